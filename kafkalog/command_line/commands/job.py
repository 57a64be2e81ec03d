"""`kafkalog job`: the Spark jobs that come with the package (docs/decisions/0021)."""

from __future__ import annotations

import click

from kafkalog.command_line.without_pandas import let_pandas_in
from kafkalog.exit_codes import ExitCode
from kafkalog.job_files import job_path, job_titles, known_job, run_job

_EPILOG = """\
\b
Jobs:
{jobs}

\b
Examples:
  kafkalog job validate-checksums /var/lib/kafka/data --output-dir /tmp/checked --format parquet
  kafkalog job consumer-lag --help
  spark-submit --master yarn $(kafkalog job --spark-submit consumer-lag) PATH --output-dir DIR

\b
Jobs need Java 17. Their tables, arguments and exit codes: docs/reference/jobs.md.
"""


def _epilog(titles: dict[str, str]) -> str:
    width = max(map(len, titles))
    return _EPILOG.format(
        jobs="\n".join(f"  {name:{width}}  {title}" for name, title in titles.items())
    )


_TITLES = job_titles()


@click.command(
    help=f"Run the Spark job NAME with its own ARGUMENTS. NAME is one of {', '.join(_TITLES)}.",
    epilog=_epilog(_TITLES),
    # Arguments after the job's name are the job's.
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--spark-submit",
    "is_for_submit",
    is_flag=True,
    help="Run nothing: print the arguments for spark-submit: kafkalog's settings, with the "
    "jars for the Spark in SPARK_HOME or on the PATH, and the job's file.",
)
@click.argument(
    "name",
    metavar="NAME",
    callback=lambda context, parameter, name: known_job(name),
    shell_complete=lambda context, parameter, begun: [
        name for name in _TITLES if name.startswith(begun)
    ],
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def job(name: str, arguments: tuple[str, ...], is_for_submit: bool) -> int:
    """Run the Spark job NAME with its own ARGUMENTS."""
    if is_for_submit:
        from kafkalog.submit_arguments import submit_arguments

        click.echo(" ".join([*submit_arguments(name, arguments), job_path(name), *arguments]))
        return ExitCode.DONE
    let_pandas_in()
    return run_job(name, *arguments)
