"""What a JVM says at every start is held back; Ivy's lines are written where the JVM ends first.

The lines are those of Spark 4.2.0 with Ivy 2.5.3, most of them left out.
"""

import subprocess
import sys

import pytest

PROGRAM = """
import subprocess, sys, time
from kafkalog.spark.jvm_output import without_start_output

with without_start_output("fetching Delta's jars, once"):
    jvm = subprocess.Popen(["sh", "-c", sys.argv[1]], stdout=subprocess.DEVNULL)
    print("said meanwhile", file=sys.stderr)
    jvm.wait()
    if sys.argv[2] == "fails":
        raise OSError("no session")
time.sleep(0.5)
print("said afterwards", file=sys.stderr)
"""
BEGIN = """\
:: loading settings :: url = jar:file:ivysettings.xml
io.delta#delta-spark_4.2_2.13 added as a dependency
\\tfound io.delta#delta-spark_4.2_2.13;4.4.0 in central
"""
FETCHED = """\
downloading https://repo1.maven.org/maven2/io/delta/delta-spark_4.2_2.13-4.4.0.jar ...
\\t[SUCCESSFUL ] io.delta#delta-spark_4.2_2.13;4.4.0!delta-spark_4.2_2.13.jar (838ms)
downloading https://repo1.maven.org/maven2/io/delta/delta-storage-4.4.0.jar ...
"""
END = """\
:: retrieving :: org.apache.spark#spark-submit-parent
\\tconfs: [default]
\\t10 artifacts copied, 0 already retrieved (19047kB/24ms)
"""
INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector\n"
BEFORE, AFTER = "Picked up JAVA_TOOL_OPTIONS: -Xint\n", "12:00:00 WARN Utils: one\n"


def said(*lines: str, outcome: str = "starts") -> list[str]:
    """What is on stderr where a JVM says these lines."""
    text = "".join(lines).replace("\n", "\\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"printf '{text}' >&2", outcome],
        capture_output=True,
        text=True,
        check=False,
    )
    return sorted(done.stderr.splitlines())


@pytest.mark.parametrize(
    ("ivys", "told"),
    [((BEGIN, FETCHED, END), ["fetching Delta's jars, once"]), ((BEGIN, END), []), ((), [])],
    ids=["fetches", "finds", "says nothing"],
)
def test_one_line_is_said_where_jars_are_fetched(ivys: tuple[str, ...], told: list[str]) -> None:
    others = [*BEFORE.splitlines(), *AFTER.splitlines(), "said meanwhile", "said afterwards"]
    assert said(BEFORE, INCUBATOR, *ivys, AFTER) == sorted([*others, *told])


def test_a_progress_bar_is_passed_on_as_it_comes() -> None:
    # It has no end of a line, and the JVM that writes it goes on after the start.
    program = PROGRAM.replace("jvm.wait()", "").replace("time.sleep(0.5)", "time.sleep(1)")
    bar = "sleep 0.4; printf '[Stage 0:>' >&2; sleep 3"
    with subprocess.Popen(
        [sys.executable, "-c", program, bar, "starts"], stderr=subprocess.PIPE, text=True
    ) as run:
        _, err = run.communicate(timeout=20)
    assert err.index("[Stage 0:>") < err.index("said afterwards")


def test_ivys_own_words_are_written_where_it_fails() -> None:
    unresolved = "\t\t::          UNRESOLVED DEPENDENCIES         ::\n"
    found = said(BEGIN, unresolved, outcome="fails")
    for line in (*BEGIN.splitlines(), unresolved.rstrip()):
        assert line.replace("\\t", "\t") in found
    assert "said meanwhile" in found and "OSError: no session" in found


def test_words_of_a_failure_come_before_the_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "echo ':: loading settings ::' >&2", "fails"],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stderr.splitlines()
    assert lines.index(":: loading settings ::") < lines.index("OSError: no session")
