"""The studio: a local web app over the service layer (`gymnast studio`).

| module | what it does |
|---|---|
| `serve` | binds an address, opens the page, ends cleanly |
| `app` | all routes |
| `guard` | who may ask: host, origin, token, and the headers of every answer |
| `answers` | JSON and error sentences |
| `runs`, `curves`, `configs`, `processes`, `files` | the routes, by what they are about |
| `live` | news over a WebSocket |
| `playing` | games: a process for each page that plays, and a relay between the two |
| `glimpses` | sparklines and alerts of many runs, remembered |
| `web/` | the page itself: ES modules without a build step |

Nothing here imports torch or Gymnasium: what needs them runs as a process of its own.
"""
