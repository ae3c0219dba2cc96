// A game that a process of the studio's plays for this page: what it sends, and what is asked of it.

const HEAD = 4;

// `start` says what to play; `on` holds functions: game(about), moment(what, bitmap), end({error} or {over}).
export function openGame(start, on) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/play/session`);
  socket.binaryType = "arraybuffer";
  let ended = false;
  let last = Promise.resolve();
  const end = (how) => {
    if (!ended) on.end(how);
    ended = true;
  };
  socket.onopen = () => socket.send(JSON.stringify(start));
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") {
      end(JSON.parse(data));
      return;
    }
    // Decoding takes a moment; pictures must not overtake each other.
    last = last.then(() => take(data)).catch((error) => end({ error: error.message }));
  };
  socket.onclose = () => end({ error: "The connection to the studio was lost." });

  async function take(data) {
    const length = new DataView(data).getUint32(0);
    const message = JSON.parse(new TextDecoder().decode(new Uint8Array(data, HEAD, length)));
    if (ended) return;
    if (message.game) {
      on.game(message.game);
      return;
    }
    let bitmap = null;
    if (data.byteLength > HEAD + length) bitmap = await createImageBitmap(new Blob([new Uint8Array(data, HEAD + length)]));
    if (ended) return;
    on.moment(message, bitmap);
    send({ seen: 1 }); // only now the next picture is made
  }

  function send(wish) {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(wish));
  }

  return {
    send,
    close() {
      ended = true;
      socket.close();
    },
  };
}
