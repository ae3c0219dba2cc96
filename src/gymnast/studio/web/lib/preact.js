// The one place that names the vendored library.
export {
  html, render, useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useErrorBoundary, createContext, useContext,
} from "/web/vendor/preact-htm.js";
