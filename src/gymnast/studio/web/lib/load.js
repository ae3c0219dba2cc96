// What a component needs from the server: the answer, that it is being waited for, or the sentence of an error.
import { useCallback, useEffect, useState } from "/web/lib/preact.js";
import { get } from "/web/lib/server.js";

export function useLoaded(path, parameters = {}) {
  const [state, set] = useState({ data: null, error: null });
  const asked = path && JSON.stringify([path, parameters]);
  const load = useCallback(() => {
    if (!asked) return () => {};
    let stale = false;
    get(path, parameters).then(
      (data) => stale || set({ data, error: null }),
      (error) => stale || set({ data: null, error: error.message }),
    );
    return () => {
      stale = true;
    };
  }, [asked]);
  useEffect(load, [load]);
  return { ...state, waiting: state.data === null && state.error === null, reload: load };
}
