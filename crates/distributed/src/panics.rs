//! A panic hook that ends the whole job.

use std::panic;

use signal_hook::low_level::exit;

/// Installs a panic hook that ends this process, whichever thread panics. The launcher then ends the job. Without the hook, only a panic of
/// the main thread would end the process. The thread would unwind first, and so start the regular shutdown of MPI, which waits for the
/// other ranks.
pub(crate) fn end_job_on_panic(rank: usize) {
    let previous_hook = panic::take_hook();
    panic::set_hook(Box::new(move |information| {
        eprintln!("rank {rank} panicked and ends the job:");
        previous_hook(information);
        exit(101);
    }));
}
