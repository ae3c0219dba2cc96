// News from the server over one WebSocket. It comes back by itself, and says again what is wanted.

const listeners = { runs: new Set(), curves: new Set(), window: new Set(), state: new Set() };
const wanted = {};
let socket = null;
let wait = 500;

export function want(topic, what) {
  wanted[topic] = what;
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ [topic]: what }));
}

export function listen(topic, listener) {
  listeners[topic].add(listener);
  return () => listeners[topic].delete(listener);
}

export function connect() {
  if (socket === null) open();
}

function open() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  socket = new WebSocket(`${scheme}://${location.host}/live`);
  socket.onopen = () => {
    wait = 500;
    tell(true);
    socket.send(JSON.stringify(wanted));
  };
  socket.onmessage = (message) => {
    const news = JSON.parse(message.data);
    for (const topic of ["runs", "curves", "window"]) {
      if (news[topic]) for (const listener of listeners[topic]) listener(news[topic]);
    }
  };
  socket.onclose = () => {
    tell(false);
    setTimeout(open, wait);
    wait = Math.min(2 * wait, 5000);
  };
}

function tell(now) {
  for (const listener of listeners.state) listener(now);
}
