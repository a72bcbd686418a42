//! Runs the program of a rank. If the program returns an error and there are other ranks, the process exits at once, so that MPI's launcher
//! ends the whole job. A [`StopSignal`] is a flag. A signal that asks the process to end sets it.

use std::error::Error as StdError;
use std::io::{self, Write};
use std::iter::successors;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts;
use signal_hook::flag;
use signal_hook::low_level::exit;

use crate::group::Group;
use crate::{Error, Result};

/// The signals that set a [`StopSignal`].
#[cfg(unix)]
const STOP_SIGNALS: [i32; 2] = [consts::SIGTERM, consts::SIGUSR1];
#[cfg(not(unix))]
const STOP_SIGNALS: [i32; 1] = [consts::SIGINT];

/// Runs `program` with the group of all ranks and returns the exit code.
///
/// An error of `program` is printed with the rank. If there are other ranks, the process then exits at once, so that
/// MPI's launcher ends the job. The exit code is [`EXIT_LOST`](crate::EXIT_LOST) if the error or one of its
/// [sources](StdError::source) is [`Error::Lost`], 1 otherwise. If there is no group, because [`Group::world`] returns an
/// error, `program` is not called and the exit code is 1.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     wengert_distributed::run(|group| {
///         group.print(format_args!("{} ranks", group.size()));
///         Ok(())
///     })
/// }
/// ```
pub fn run(program: impl FnOnce(&Group) -> Result<(), Box<dyn StdError>>) -> ExitCode {
    let group = match Group::world() {
        Ok(group) => group,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let Err(error) = program(&group) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("rank {} of {}: error: {error}", group.rank(), group.size());
    let code = exit_code_of(&*error);
    if group.size() > 1 {
        // A regular shutdown of MPI would wait for ranks that have ended or are in another operation.
        let _ = io::stdout().flush();
        // This `exit` skips exit handlers, because a handler of MPI could wait too.
        exit(code.into());
    }
    ExitCode::from(code)
}

/// Returns the largest exit code of the error and its sources, or 1 if none of them is an error of this crate.
fn exit_code_of(error: &(dyn StdError + 'static)) -> u8 {
    let errors = successors(Some(error), |&error| error.source());
    errors.filter_map(|error| error.downcast_ref()).map(Error::exit_code).max().unwrap_or(1)
}

/// A flag that is set when the process is asked to end. The signals are SIGTERM, which schedulers send before they take
/// a machine away, and SIGUSR1, which `mpirun` passes on to all ranks. Windows does not send these signals. There, Ctrl+C (SIGINT) sets the
/// flag.
///
/// ```
/// use wengert_distributed::{Group, StopSignal};
///
/// let group = Group::world()?;
/// let stop = StopSignal::listen()?;
/// for step in 0..3 {
///     // … a step …
///     if group.any(stop.came())? {
///         break; // after a checkpoint
///     }
/// }
/// # Ok::<(), wengert_distributed::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StopSignal {
    came: Arc<AtomicBool>,
}

impl StopSignal {
    /// Starts to listen for SIGTERM and SIGUSR1, or for SIGINT on Windows. From then on, these signals do not end the process.
    ///
    /// # Errors
    ///
    /// [`Error::Signal`] if the system does not allow a signal handler.
    pub fn listen() -> Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in STOP_SIGNALS {
            flag::register(signal, Arc::clone(&came)).map_err(Error::Signal)?;
        }
        Ok(StopSignal { came })
    }

    /// Returns true if a signal came to this process. [`Group::any`] combines the flags of all ranks.
    pub fn came(&self) -> bool {
        self.came.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Box<dyn StdError>);

    #[test]
    fn a_lost_rank_inside_of_another_error_gives_its_exit_code() {
        let lost = || Error::Lost { rank: 0, operation: "step", waited: Duration::ZERO, silent: vec![1], late: vec![] };
        assert_eq!(exit_code_of(&lost()), crate::EXIT_LOST);
        assert_eq!(exit_code_of(&Outer(Outer(lost().into()).into())), crate::EXIT_LOST);
        assert_eq!(exit_code_of(&Outer(Error::NoRows.into())), 1);
        assert_eq!(exit_code_of(&io::Error::other("full")), 1);
    }

    #[test]
    #[cfg(unix)]
    fn a_stop_signal_sets_the_flag_and_does_not_end_the_process() {
        for signal in STOP_SIGNALS {
            let stop = StopSignal::listen().unwrap();
            assert!(!stop.came());
            signal_hook::low_level::raise(signal).unwrap();
            assert!(stop.came() && stop.clone().came());
        }
    }
}
