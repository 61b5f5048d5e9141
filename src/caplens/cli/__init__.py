"""The command line. A verb is one file of this folder: `name.py` with a function `command`, or with a typer `app`.

Exit codes: 0 done, 1 a comparison or check failed (a verb raises `typer.Exit(1)`), 2 bad input, 3 an error in caplens
or in a plug-in, 130 interrupted.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from caplens.cli._show import tell
from caplens.core.errors import CaplensWarning, MetricNote, UnexpectedError, as_caplens_error

__all__ = ["build_app", "main"]

# The order in `caplens --help`; a verb file that is not named here stands at the end.
_DAILY = ("demo", "score", "check", "explain", "compare", "caption")
_OTHERS = ("report", "filter", "generate", "bench", "train", "weights", "idf", "metrics", "new-metric", "doctor")
ORDER = (*_DAILY, "serve", "export", *_OTHERS)

INTERRUPTED = 130


# Options that name a file to write; whatever else a verb is given may name one that it reads.
_OUTPUTS = ("json", "html", "csv", "jsonl", "sarif", "output")


class _Careful(TyperCommand):
    """A verb that never writes over a file it reads."""

    def invoke(self, ctx: Any) -> Any:
        from caplens.storage.atomic import refuse_overwriting

        inputs = []
        for name, value in ctx.params.items():
            if name not in _OUTPUTS:
                values = value if isinstance(value, list | tuple) else [value]
                inputs += [entry for entry in values if isinstance(entry, str | os.PathLike)]
        inputs += [str(entry).partition("=")[2] for entry in inputs]  # an option of a metric: idf=table.safetensors
        refuse_overwriting([ctx.params.get(name) for name in _OUTPUTS], inputs)
        return super().invoke(ctx)


class _InOrder(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def build_app() -> typer.Typer:
    """Every verb file becomes a command; files whose name starts with an underscore are helpers."""
    app = typer.Typer(
        cls=_InOrder,
        help="Judge captions of images and videos.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_every_verb)
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    for module in names:
        name, verb = module.replace("_", "-"), importlib.import_module(f"{__name__}.{module}")
        if hasattr(verb, "app"):
            for command in verb.app.registered_commands:
                command.cls = _Careful
            app.add_typer(verb.app, name=name)
        else:
            app.command(name, cls=_Careful)(verb.command)
    return app


def _name_arguments_plainly(command: Any) -> None:
    """Show arguments in every help as CAPTIONS..., where typer would write {CAPTIONS...}... <list[Path]>; no <bool>."""
    for below in getattr(command, "commands", {}).values():
        _name_arguments_plainly(below)
    for parameter in command.params:
        if parameter.param_type_name == "argument" or getattr(parameter, "is_flag", False):
            parameter.display_type_rich = lambda ctx: None
        if parameter.param_type_name == "argument":
            parameter.get_usage_pieces = lambda ctx, name=parameter.metavar: [name]


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"caplens {version('caplens')}")
        raise typer.Exit


def _every_verb(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    """Judge captions of images and videos."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one verb and exit with its code."""
    _open_closed_streams()
    arguments = _bare_json_means_stdout(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character gets it written out
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():  # the process is the command line's own, and this is its first thread
        warnings.simplefilter("always", CaplensWarning)
        warnings.filterwarnings("ignore", module="PIL")  # remarks on metadata that nobody here looks at
        notes: dict[str, dict[str, None]] = {}
        warnings.showwarning = functools.partial(_show_warning, notes)
        try:
            command = typer.main.get_command(build_app())
            _name_arguments_plainly(command)
            code = command.main(args=arguments, prog_name="caplens", standalone_mode=False)
            if code == INTERRUPTED:  # some versions of typer return it, others raise
                _fail("interrupted", INTERRUPTED)
        except (KeyboardInterrupt, typer.Abort):
            _fail("interrupted", INTERRUPTED)
        except BrokenPipeError:  # the reader of our output (head, less) has left
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except Exception as error:
            if hasattr(error, "format_message"):  # what typer has to say about the arguments
                _explain_usage(error)
                sys.exit(2)
            reason = as_caplens_error(error)
            _fail(str(reason), 3 if isinstance(reason, UnexpectedError) else 2)
        finally:
            for note, metrics in notes.items():
                tell(f"note: {', '.join(metrics)}: {note}")
    sys.exit(code if isinstance(code, int) else 0)


def _open_closed_streams() -> None:
    """Give standard streams that are closed a place, or the next file we open gets a library's remarks into it."""
    closed = sys.stdout is None
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdin, sys.stdout, sys.stderr = (
        stream or open(number, mode, encoding="utf-8")  # noqa: SIM115
        for stream, number, mode in ((sys.stdin, 0, "r"), (sys.stdout, 1, "w"), (sys.stderr, 2, "w"))
    )
    if closed:
        _fail("standard output is closed; send it to a file or to /dev/null", 2)


def _show_warning(
    notes: dict[str, dict[str, None]],
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Say it now; notes on numbers come below them, once for all metrics that say the same."""
    if isinstance(message, MetricNote):
        notes.setdefault(message.note, {})[message.metric] = None
        return
    if issubclass(category, CaplensWarning):
        tell(f"note: {message}")
        return
    for shown in warnings.formatwarning(message, category, filename, lineno, line).splitlines():
        tell(shown)


def _explain_usage(error: Any) -> None:
    """Say what is wrong with the arguments, which may be names of files that somebody else chose."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help itself
        for line in error.format_message().splitlines():
            tell(line)
        return
    if context is not None:
        for line in context.get_usage().splitlines():
            tell(line)
        tell(f"Try '{context.command_path} {context.help_option_names[0]}' for help.")
        tell("")
    tell(f"Error: {error.format_message()}")


def _fail(message: str, code: int) -> NoReturn:
    tell(f"caplens: {message}")
    sys.exit(code)


def _bare_json_means_stdout(arguments: Sequence[str]) -> list[str]:
    """`--json` without a file name means `--json -`.

    >>> _bare_json_means_stdout(["metrics", "--json"]), _bare_json_means_stdout(["score", "--json", "a", "--strict"])
    (['metrics', '--json=-'], ['score', '--json', 'a', '--strict'])
    """
    given = list(arguments)
    for place, word in enumerate(given):
        following = given[place + 1] if place + 1 < len(given) else "--"
        if word == "--json" and following.startswith("-") and following != "-":
            given[place] = "--json=-"
    return given
