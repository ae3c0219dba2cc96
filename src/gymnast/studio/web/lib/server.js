// Requests to the studio's server. A refused one throws an Error whose message is the server's sentence.

export async function get(path, parameters = {}) {
  return answerOf(await reached(() => fetch(address(path, parameters))));
}

export async function post(path, body = {}) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return answerOf(await reached(() => fetch(path, options)));
}

export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) {
      if (one !== undefined && one !== null && one !== "") query.append(name, one);
    }
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

async function reached(request) {
  try {
    return await request();
  } catch {
    throw new Error("The studio does not answer. Is it still running?");
  }
}

async function answerOf(response) {
  let found = null;
  try {
    found = await response.json();
  } catch {
    // not JSON: the status has to do
  }
  if (!response.ok) throw new Error(found?.error ?? `The studio answered ${response.status}.`);
  return found;
}
