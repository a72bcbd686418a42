//! What can go wrong between ranks, as values.

use std::time::Duration;

use wengert_tensor::DType;

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The exit code of a rank that lost another one: `EX_TEMPFAIL` of `sysexits.h`, which tells a supervisor to start again.
pub const EXIT_LOST: u8 = 75;

/// Everything that a group of ranks refuses or that befalls it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model, an optimiser, data or a file.
    #[error(transparent)]
    Nn(#[from] wengert_nn::Error),

    /// A tape refuses an operation.
    #[error(transparent)]
    Autograd(#[from] wengert_autograd::Error),

    /// A tensor operation refuses its operands.
    #[error(transparent)]
    Tensor(#[from] wengert_tensor::Error),

    /// Other ranks were waited for until the deadline. The group can do nothing more: the program should end, and be started
    /// again from its last checkpoint.
    #[error("{}", lost(*rank, during, *waited, silent, late))]
    Lost {
        /// This rank.
        rank: usize,
        /// What it was doing: `all_reduce`.
        during: &'static str,
        /// How long it waited.
        waited: Duration,
        /// The ranks that gave no sign of life.
        silent: Vec<usize>,
        /// The ranks that are alive but did not come to the same operation.
        late: Vec<usize>,
    },

    /// Ranks that came to one operation with different shapes or types, or to different operations. All of them get this error.
    #[error("the ranks differ: {}", said(descriptions))]
    Mismatch {
        /// What each rank came with, in the order of the ranks.
        descriptions: Vec<String>,
    },

    /// Parameters or buffers that should be equal on all ranks and are not.
    #[error("'{path}' differs between rank 0 and rank {rank}; were all ranks made with the same seed and data?")]
    Unequal {
        /// The path of the first that differs.
        path: String,
        /// The first rank that has other values than rank 0.
        rank: usize,
    },

    /// A rank that is not in the group.
    #[error("there is no rank {rank} in a group of {size}")]
    NoSuchRank {
        /// The number that was given.
        rank: usize,
        /// How many ranks there are.
        size: usize,
    },

    /// A tensor that cannot be cut into equal parts along its first dimension.
    #[error("{operation}: a first dimension of {rows} cannot be divided among {size} ranks")]
    Indivisible {
        /// What was to be done.
        operation: &'static str,
        /// The size of the first dimension.
        rows: usize,
        /// How many ranks there are.
        size: usize,
    },

    /// A type of elements that the operation has no sum for.
    #[error("{operation}: elements of type {dtype} cannot be reduced")]
    NotReducible {
        /// What was to be done.
        operation: &'static str,
        /// The type.
        dtype: DType,
    },

    /// More ranks than shards: some would have nothing to do in any step.
    #[error("{shards} shards of a batch for {size} ranks; give as many shards as there will ever be ranks")]
    TooFewShards {
        /// Shards of a batch.
        shards: usize,
        /// How many ranks there are.
        size: usize,
    },

    /// Parameters that were frozen or trained again after the optimiser's states were sharded.
    #[error(
        "which parameters are frozen has changed since the optimiser's states were sharded; make a new DataParallel"
    )]
    FrozenChanged,

    /// What cannot be done while parameters are sharded.
    #[error("the parameters are sharded: {0}")]
    ShardedParameters(&'static str),

    /// A step without rows.
    #[error("a step needs at least one row")]
    NoRows,

    /// A program that was started by `mpirun` but built without MPI.
    #[error(
        "this program was started as one of {size} ranks, but built without MPI: build it with `--features mpi` of wengert-distributed"
    )]
    BuiltWithoutMpi {
        /// How many ranks the launcher started.
        size: usize,
    },

    /// MPI did not start, or was started before.
    #[error("cannot start MPI: {reason}")]
    Start {
        /// Why not.
        reason: &'static str,
    },

    /// A signal that cannot be listened to.
    #[error("cannot listen to signals: {0}")]
    Signal(std::io::Error),

    /// A file that rank 0 could not write.
    #[error("rank 0 could not write the checkpoint: {reason}")]
    Checkpoint {
        /// What rank 0 said.
        reason: String,
    },
}

impl Error {
    /// The exit code of a program that ends with this error: [`EXIT_LOST`] where a rank was lost, 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Error::Lost { .. }) { EXIT_LOST } else { 1 }
    }
}

/// `rank 2`, or `ranks 1, 3 and 4`.
fn ranks(numbers: &[usize]) -> String {
    match numbers {
        [] => "another rank".to_owned(),
        [one] => format!("rank {one}"),
        [most @ .., last] => {
            let most: Vec<String> = most.iter().map(usize::to_string).collect();
            format!("ranks {} and {last}", most.join(", "))
        }
    }
}

fn lost(rank: usize, during: &str, waited: Duration, silent: &[usize], late: &[usize]) -> String {
    let seconds = waited.as_secs_f64();
    let what = if silent.is_empty() {
        format!("{} did not come to it (alive, but slow or elsewhere in the program)", ranks(late))
    } else {
        format!("{} gave no sign of life (died, hangs, or its network is cut)", ranks(silent))
    };
    format!("rank {rank} waited {seconds:.1} s in {during}: {what}; start again from the last checkpoint")
}

/// Who said what, ranks that agree together.
fn said(descriptions: &[String]) -> String {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (rank, text) in descriptions.iter().enumerate() {
        match groups.iter_mut().find(|(known, _)| known == text) {
            Some((_, ranks)) => ranks.push(rank),
            None => groups.push((text, vec![rank])),
        }
    }
    let parts: Vec<String> =
        groups.iter().map(|(text, numbers)| format!("{} came with {text}", ranks(numbers))).collect();
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
            "the ranks differ: ranks 0, 2 and 3 came with a; rank 1 came with b"
        );
        let lost = Error::Lost {
            rank: 0,
            during: "all_reduce",
            waited: Duration::from_secs(5),
            silent: vec![2],
            late: vec![1],
        };
        assert_eq!(lost.exit_code(), 75);
        let text = lost.to_string();
        assert!(text.starts_with("rank 0 waited 5.0 s in all_reduce: rank 2 gave no sign of life"), "{text}");
    }
}
