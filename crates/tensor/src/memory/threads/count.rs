//! The number of threads that operations use.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use smallvec::SmallVec;

use crate::memory::threads::team::range_of_thread;

/// The maximum number of threads. WebAssembly without shared memory has a single thread and no clock, so no helper may start.
pub(super) const MAX_THREADS: usize = if cfg!(target_family = "wasm") { 1 } else { 256 };

/// The number of threads that operations use.
static THREADS: LazyLock<AtomicUsize> = LazyLock::new(|| {
    let requested = std::env::var("WENGERT_NUM_THREADS").ok().and_then(|text| text.trim().parse().ok());
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    AtomicUsize::new(requested.filter(|&threads| threads > 0).unwrap_or_else(processors).min(MAX_THREADS))
});

/// Returns the number of threads that an operation may use, the calling one included.
///
/// This is the number of processors that the process may use, unless the environment variable `WENGERT_NUM_THREADS` or [`set_num_threads`]
/// sets another number. The variable is read when the number is first needed. A value of the variable that is not a positive integer is
/// ignored. The number is at most 256, and always 1 in WebAssembly. On a busy machine, operations may use fewer threads. PyTorch:
/// `torch.get_num_threads`.
pub fn num_threads() -> usize {
    THREADS.load(Ordering::Relaxed)
}

/// Sets the number of threads that later operations use at most, clamped to 1 ..= 256. Results have the same bits for every number of
/// threads. In WebAssembly the number is always 1. PyTorch: `torch.set_num_threads`.
pub fn set_num_threads(threads: usize) {
    THREADS.store(threads.clamp(1, MAX_THREADS), Ordering::Relaxed);
}

/// Splits `0 .. count` into nearly equal ranges: at most one for each thread. A range is shorter than `least` only if it is the only one.
/// Returns the starts of the ranges.
pub(crate) fn even_range_starts(count: usize, least: usize) -> SmallVec<[usize; 16]> {
    range_starts(count, max_part_count(count, least))
}

/// Returns the number of parts of `count` units: at most one for each thread, and each with at least `least` units. Returns 1 if there are
/// fewer than `least` units.
pub(crate) fn max_part_count(count: usize, least: usize) -> usize {
    num_threads().min(count / least.max(1)).max(1)
}

/// Splits `0 .. count` into `parts` nearly equal ranges. Returns the starts of the ranges.
pub(crate) fn range_starts(count: usize, parts: usize) -> SmallVec<[usize; 16]> {
    (0..parts).map(|part| range_of_thread(part, parts, count).start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::threads::Schedule;

    #[test]
    fn even_starts_leave_no_short_range() {
        assert_eq!(even_range_starts(10, 100)[..], [0]);
        assert_eq!(even_range_starts(0, 1)[..], [0]);
        let starts = even_range_starts(1000, 300);
        assert!(starts.len() <= 3 && starts.windows(2).all(|pair| pair[1] - pair[0] >= 300), "{starts:?}");
    }

    /// The environment variable with the number of threads that [`child`] expects.
    const CHILD: &str = "WENGERT_TEST_THREADS_OF_A_PROCESS";

    /// Checks the number of threads, the helpers that an operation starts, and [`set_num_threads`]. Does nothing unless
    /// [`a_process_reads_its_number_of_threads`] runs this test in a separate process.
    #[test]
    fn child() {
        let Some(expected) = std::env::var(CHILD).ok().and_then(|text| text.parse::<usize>().ok()) else { return };
        assert_eq!(num_threads(), expected);
        let running = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
        let before = running();
        crate::memory::threads::run(1000, Schedule::Parallel, |_| ());
        let helpers = if before == 0 { 0 } else { expected - 1 };
        assert_eq!(running() - before, helpers, "the helpers that an operation starts, on a system that lists threads");
        for (threads, expected) in [(7, 7), (0, 1), (MAX_THREADS + 1, MAX_THREADS)] {
            set_num_threads(threads);
            assert_eq!(num_threads(), expected);
        }
    }

    #[test]
    fn a_process_reads_its_number_of_threads() {
        let processors = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        for (value, expected) in [("3", 3), (" 5\n", 5), ("1000", MAX_THREADS), ("0", processors), ("many", processors)]
        {
            let mut child = std::process::Command::new(std::env::current_exe().expect("this program has a path"));
            child.args(["--exact", "memory::threads::count::tests::child", "--test-threads=1"]);
            child.env("WENGERT_NUM_THREADS", value).env(CHILD, expected.to_string());
            let output = child.output().expect("the child starts");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{value}: {text}");
        }
    }
}
