//! The errors of groups of ranks, as values.

use std::fmt;
use std::time::Duration;

use wengert_tensor::Site;

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The exit code of a rank that lost another rank: `EX_TEMPFAIL` of `sysexits.h`. It tells a supervisor to start the job again.
pub const EXIT_LOST: u8 = 75;

/// An error of a group of ranks. `Debug` shows the same text as `Display`, so that `main() -> Result` and `unwrap` print a
/// sentence.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of a model, an optimiser, data or a file.
    #[error(transparent)]
    Nn(#[from] wengert_nn::Error),

    /// An error of a tape.
    #[error(transparent)]
    Autograd(#[from] wengert_autograd::Error),

    /// An error of a tensor operation.
    #[error(transparent)]
    Tensor(#[from] wengert_tensor::Error),

    /// Other ranks ended, or this rank waited for them until the deadline. The group cannot continue: end the program
    /// and start it again from its last checkpoint.
    #[error("{}", lost_message(*rank, operation, *waited, silent, late))]
    Lost {
        /// The rank that waited.
        rank: usize,
        /// The operation during which this rank waited, such as `all_reduce`.
        operation: &'static str,
        /// The deadline. This rank waited at most this time.
        waited: Duration,
        /// The ranks that gave no sign of life.
        silent: Vec<usize>,
        /// The ranks that are alive but did not reach the same operation.
        late: Vec<usize>,
    },

    /// The ranks called one operation with different arguments, such as shapes or types, or called different
    /// operations. All ranks get this error.
    #[error("the ranks differ: {}", mismatch_message(descriptions))]
    Mismatch {
        /// The operation and the arguments of each rank, in the order of the ranks.
        descriptions: Vec<String>,
    },

    /// Parameters or buffers that should be equal on all ranks differ.
    #[error("'{path}' differs between rank 0 and rank {rank}; were all ranks made with the same seed and data?")]
    Unequal {
        /// The path of the first tensor that differs.
        path: String,
        /// The first rank whose values differ from the values of rank 0.
        rank: usize,
    },

    /// The caller named a rank that the group does not have.
    #[error("there is no rank {rank} in a group of {size}")]
    NoSuchRank {
        /// The rank that was requested.
        rank: usize,
        /// The number of ranks.
        size: usize,
    },

    /// A tensor cannot be divided into equal parts along its first dimension.
    #[error("{operation}: a first dimension of {rows} cannot be divided among {size} ranks")]
    Indivisible {
        /// The name of the operation.
        operation: &'static str,
        /// The size of the first dimension.
        rows: usize,
        /// The number of ranks.
        size: usize,
    },

    /// There are more ranks than shards (parts of a batch), so some ranks would have nothing to do in any step.
    #[error("a batch has {shards} shards for {size} ranks; use at least one shard for each rank")]
    TooFewShards {
        /// The number of shards of a batch.
        shards: usize,
        /// The number of ranks.
        size: usize,
    },

    /// A shard (part of a batch) differs from the first shard of its rank. It has gradients of other parameters, changes other buffers, or
    /// has other synchronization points. The sum of the two shards would have no meaning. This happens if the loss uses other layers for
    /// some data.
    #[error(
        "shard {shard} of the batch has {got}, but the first shard has {expected}; use the same layers for all shards, for example with a \
         mask"
    )]
    ShardsDiffer {
        /// The index of the shard in the batch.
        shard: usize,
        /// The gradients and changes of the first shard of the rank.
        expected: String,
        /// The gradients and changes of this shard.
        got: String,
    },

    /// Parameters were frozen or unfrozen after the optimiser's states were sharded.
    #[error("parameters were frozen or unfrozen after the optimiser's states were sharded; make a new DataParallel")]
    FrozenChanged,

    /// The optimiser's step of an element depends on other elements, so its states cannot be divided among ranks.
    #[error(
        "{optimizer} cannot be sharded: the step of an element depends on the whole parameter\n  --> {}, in {}\n  hint: use an elementwise \
         optimiser, such as AdamW, or train without `{}`", at.location, at.operation, at.operation
    )]
    NotElementwise {
        /// The name of the optimiser's type.
        optimizer: &'static str,
        /// The call that requested sharding.
        at: Site,
    },

    /// The operation is not possible while parameters are sharded.
    #[error("the parameters are sharded: {0}")]
    ShardedParameters(&'static str),

    /// The operation would lose states of the optimiser that are sharded.
    #[error("the optimiser's states are sharded: {0}")]
    ShardedStates(&'static str),

    /// A step was called for a batch of 0 rows, or [`Group::sum_rows`](crate::Group::sum_rows) for 0 rows or 0 shards.
    #[error("a step or `sum_rows` needs at least one row and one shard")]
    NoRows,

    /// A launcher, such as `mpirun`, started several processes of a program that was built without MPI.
    #[error(
        "this program was started as one of {size} ranks, but built without MPI: build it with `--features mpi` of wengert-distributed"
    )]
    BuiltWithoutMpi {
        /// The number of ranks that the launcher started.
        size: usize,
    },

    /// MPI did not start, was started before, or the environment variable `WENGERT_DEADLINE` is not a number of seconds.
    #[error("cannot start MPI: {reason}")]
    Start {
        /// The reason.
        reason: &'static str,
    },

    /// The system does not allow a signal handler.
    #[error("cannot listen to signals: {0}")]
    Signal(std::io::Error),

    /// Rank 0 could not write a checkpoint.
    #[error("rank 0 could not write the checkpoint: {reason}")]
    Checkpoint {
        /// The message of rank 0's error.
        reason: String,
    },
}

/// Writes the same text as `Display`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Returns the exit code of a program that ends with this error: [`EXIT_LOST`] if a rank was lost, 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Error::Lost { .. }) { EXIT_LOST } else { 1 }
    }
}

/// Returns a list of ranks as text: `rank 2`, or `ranks 1, 3 and 4`. An empty list becomes `another rank`.
fn list_ranks(numbers: &[usize]) -> String {
    match numbers {
        [] => "another rank".to_owned(),
        [one] => format!("rank {one}"),
        [most @ .., last] => {
            let most: Vec<String> = most.iter().map(usize::to_string).collect();
            format!("ranks {} and {last}", most.join(", "))
        }
    }
}

fn lost_message(rank: usize, operation: &str, waited: Duration, silent: &[usize], late: &[usize]) -> String {
    let seconds = waited.as_secs_f64();
    let what = if silent.is_empty() {
        format!("{} did not come to it (alive, but slow or elsewhere in the program)", list_ranks(late))
    } else {
        format!("{} gave no sign of life (died, hangs, or its network is cut)", list_ranks(silent))
    };
    format!("rank {rank} waited {seconds:.1} s in {operation}: {what}; start again from the last checkpoint")
}

/// Returns the descriptions as text. Ranks with equal descriptions are named together.
fn mismatch_message(descriptions: &[String]) -> String {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (rank, text) in descriptions.iter().enumerate() {
        match groups.iter_mut().find(|(known, _)| known == text) {
            Some((_, ranks)) => ranks.push(rank),
            None => groups.push((text, vec![rank])),
        }
    }
    let parts: Vec<String> =
        groups.iter().map(|(text, numbers)| format!("{} called {text}", list_ranks(numbers))).collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_the_ranks() {
        let descriptions = ["a", "b", "a", "a"].map(str::to_owned).to_vec();
        assert_eq!(
            Error::Mismatch { descriptions }.to_string(),
            "the ranks differ: ranks 0, 2 and 3 called a; rank 1 called b"
        );
        let lost = Error::Lost {
            rank: 0,
            operation: "all_reduce",
            waited: Duration::from_secs(5),
            silent: vec![2],
            late: vec![1],
        };
        assert_eq!(lost.exit_code(), 75);
        assert_eq!(format!("{lost:?}"), lost.to_string());
        let text = lost.to_string();
        assert!(text.starts_with("rank 0 waited 5.0 s in all_reduce: rank 2 gave no sign of life"), "{text}");
    }
}
