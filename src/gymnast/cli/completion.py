"""`gymnast completion SHELL`: the script that makes a shell complete configs, keys and runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gymnast.cli.options import echo
from gymnast.errors import UsageError

# Bash takes `CartPole-v1:p` for three words: what it has before the last `:` or `=` is cut off every answer.
BASH = """_gymnast() {
  local line="${COMP_LINE:0:COMP_POINT}" word found
  local -a words
  read -ra words <<< "$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  word="${words[${#words[@]}-1]}"
  mapfile -t found < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
  COMPREPLY=("${found[@]}")
  if [[ "$word" == *[:=]* && "$COMP_WORDBREAKS" == *:* ]]; then
    COMPREPLY=("${found[@]#"${word%"${word##*[:=]}"}"}")
  fi
  if [[ ${#found[@]} -eq 1 && "${found[0]}" == *[:=] ]]; then compopt -o nospace; fi
}
complete -o default -F _gymnast gymnast
"""
ZSH = """#compdef gymnast
_gymnast() {
  local -a found open
  found=("${(@f)$("${words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  found=(${found:#})
  if (( ! ${#found} )); then _files; return; fi
  open=(${(M)found:#*[:=]})
  found=(${found:#*[:=]})
  (( ${#found} )) && compadd -- "${found[@]}"
  (( ${#open} )) && compadd -S '' -- "${open[@]}"
}
compdef _gymnast gymnast
"""
FISH = """function __gymnast_complete
  set -l words (commandline -opc)
  $words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c gymnast -f -a '(__gymnast_complete)'
complete -c gymnast -n 'test -z "(__gymnast_complete)"' -F
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completion(
    shell: Annotated[
        str | None,
        typer.Argument(metavar="[bash|zsh|fish]", help="The shell (default: the one you use).", show_default=False),
    ] = None,
) -> None:
    """Print a shell script that completes commands, configs, keys and runs.

    In ~/.bashrc: eval "$(gymnast completion bash)". In ~/.zshrc, after compinit: eval "$(gymnast completion zsh)".
    In ~/.config/fish/config.fish: gymnast completion fish | source.
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in SCRIPTS:
        raise UsageError(f"'{name}' is not a supported shell: bash, zsh, fish.")
    echo(SCRIPTS[name], nl=False)
