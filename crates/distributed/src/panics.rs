//! Panics end the job.

use std::panic;

use signal_hook::low_level::exit;

/// Makes a panic, of whatever thread, end this process, so that the launcher ends the job: a rank that unwinds would leave MPI in
/// order and wait for the others there.
pub(crate) fn panics_end_the_job(rank: usize) {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |information| {
        eprintln!("rank {rank} panicked and ends the job:");
        before(information);
        exit(101);
    }));
}
