"""Charts as data, and what draws them: the terminal, SVG, web pages and, for PNG and PDF, matplotlib."""
