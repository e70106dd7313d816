"""Worker processes of the standard library: every worker's counts are stored, exactly."""

from typing import Any

import pytest

from support.programs import Programs, Total

#: In a file of its own: spawned processes import it again.
WORK = """
meter = Meter(URL, flush_interval=60)
handle = meter.counter("y")

def work(number=0):
    for _ in range(10):
        meter.count("x")
        handle.inc()
    meter.count("by", labels={"pid": str(os.getpid())})
    return os.getpid()
"""


@pytest.mark.parametrize(
    "how",
    [
        *("fork", "fork after the parent counted"),
        *(pytest.param(how, marks=pytest.mark.slow) for how in ("spawn", "forkserver")),
    ],
)
def test_every_worker_stores_what_it_counted(
    programs: Programs, total: Total, conn: Any, how: str
) -> None:
    """Though such processes end without the exit handlers of an interpreter.

    A process, one that fails, a pool that replaces its processes, one of concurrent.futures, and a
    process in which a thread goes on.
    """
    method, counts = how.split()[0], "counted" in how
    done = programs.run(
        WORK
        + f"""
def in_thread():
    meter.count("x", 0)
    def later():
        threading.main_thread()
        time.sleep(0.05)
        work()
    threading.Thread(target=later).start()

def fail():
    work()
    raise SystemExit(7)

def main():
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    context = multiprocessing.get_context("{method}")
    {"work()" if counts else ""}
    targets = [work, work, fail, in_thread]
    processes = [context.Process(target=target) for target in targets]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 7, 0]
    pool = context.Pool(1, maxtasksperchild=3)
    pids = pool.map(work, range(6), chunksize=1)
    pool.close()
    pool.join()
    assert len(set(pids)) == 2
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        pids = list(pool.map(work, range(12)))
    print(len(targets) + 6 + 12)

if __name__ == "__main__":
    main()
"""
    )
    assert (done.code, done.err) == (0, "")
    tasks = done.numbers[-1] + counts
    assert (total(), total("y")) == (10 * tasks, 10 * tasks)
    named = {name: count for name, count in conn.hgetall("redmeter:total:").items() if b"{" in name}
    assert sum(map(int, named.values())) == tasks


def test_a_pool_that_is_terminated_loses_one_interval_at_most(
    programs: Programs, total: Total
) -> None:
    """Its processes are ended by SIGTERM, as by the end of its `with` block."""
    done = programs.run(
        WORK.replace("60", "0.05")
        + """
if __name__ == "__main__":
    import multiprocessing
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work, range(12), chunksize=1)
        asked = time.monotonic()
        while meter.total("x") < 120 and time.monotonic() < asked + 5:
            time.sleep(0.01)
        pool.map(work, range(2), chunksize=1)
"""
    )
    assert (done.code, done.err) == (0, "")
    assert 120 <= total() <= 140
    assert total() % 10 == 0


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_pool_in_a_with_statement_stores_what_it_counted(
    programs: Programs, total: Total, method: str
) -> None:
    """If it is closed and joined: the end of the block sends SIGTERM to its workers.

    A handler of SIGTERM in a worker is no remedy, so there is no test of one: CPython may not run
    it. Pool.terminate() takes the lock that idle workers wait for, then sends SIGTERM. A worker
    that this lock has just woken up gets the signal outside its system call, and waits again.
    """
    done = programs.run(
        WORK
        + f"""
def main():
    import multiprocessing
    context = multiprocessing.get_context("{method}")
    with context.Pool(2) as pool:
        pool.map(work, range(20), chunksize=1)
        pool.close()
        pool.join()

if __name__ == "__main__":
    main()
"""
    )
    assert (done.code, done.err) == (0, "")
    assert (total(), total("y")) == (200, 200)
