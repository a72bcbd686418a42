//! A group of ranks: its size, the checks that its ranks agree, and the deadline for waiting.

use std::cell::Cell;
use std::env;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write as _;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use wengert_tensor::set_num_threads;

#[cfg(feature = "mpi")]
use crate::panics::end_job_on_panic;
use crate::payload::Payload;
#[cfg(feature = "mpi")]
use crate::transport::mpi::Mpi;
use crate::transport::threads::Threads;
use crate::transport::{Exchange, Pending, Stalled, Transport};
use crate::tree::part_range;
use crate::{Error, Result};

/// The default time for which a rank waits for other ranks.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

/// The processes that train one model together, as one process sees them. PyTorch: the process group of
/// `torch.distributed`.
///
/// All ranks must call the methods that communicate in the same order. Most methods check this: if ranks call different
/// methods, or pass tensors of different shapes or types, all ranks get [`Error::Mismatch`]. If a rank does not call a
/// method at all, the others get [`Error::Lost`] after the [`deadline`](Self::set_deadline).
///
/// ```
/// use wengert_distributed::Group;
///
/// // Not started by `mpirun`: a group of one, and everything works as it does with many.
/// let group = Group::world()?;
/// assert_eq!((group.rank(), group.size()), (0, 1));
/// assert_eq!(group.share(10), 0..10);
/// # Ok::<(), wengert_distributed::Error>(())
/// ```
pub struct Group {
    rank: usize,
    size: usize,
    transport: Box<dyn Transport>,
    deadline: Cell<Duration>,
    traffic: Cell<Traffic>,
}

/// The amount of data that a rank has sent since its group was made. A sum by MPI's own all-reduce counts as one
/// message, and its bytes are an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of messages.
    pub messages: u64,
    /// The number of bytes in these messages.
    pub bytes: u64,
}

/// An exchange of messages that has been started but not awaited, with the name of the operation that needs it.
pub(crate) struct PendingExchange {
    pending: Box<dyn Pending>,
    operation: &'static str,
}

impl Group {
    /// Returns the group of all processes that the launcher (`mpirun`, `srun`) started, or of this process alone if there is no launcher.
    /// Call this function once in a process.
    ///
    /// With a launcher, three things change. The process gets a share of the machine's cores, unless
    /// `WENGERT_NUM_THREADS` or the launcher's binding says otherwise. A panic on one rank ends the job. The
    /// environment variable `WENGERT_DEADLINE` sets the [deadline](Self::set_deadline) in seconds, for which a rank waits
    /// for others.
    ///
    /// # Errors
    ///
    /// [`Error::BuiltWithoutMpi`] if a launcher started several processes and the feature `mpi` is off;
    /// [`Error::Start`] if MPI cannot be started, was started by an earlier call, or `WENGERT_DEADLINE` is not a number of seconds.
    pub fn world() -> Result<Group> {
        let launched = first_number_in_env(&["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS"]);
        let size = launched.or_else(|| env::var_os("PMIX_RANK").and(first_number_in_env(&["SLURM_NTASKS"])));
        let Some(size) = size else {
            return Ok(Group::alone());
        };
        let deadline = env::var_os("WENGERT_DEADLINE").map_or(Ok(DEFAULT_DEADLINE), |text| parse_seconds(&text))?;
        let group = Group::from_launcher(size)?;
        group.set_deadline(deadline);
        if env::var_os("WENGERT_NUM_THREADS").is_none() {
            set_num_threads(cores_per_rank());
        }
        Ok(group)
    }

    #[cfg(feature = "mpi")]
    fn from_launcher(_size: usize) -> Result<Group> {
        let (transport, rank, size) = Mpi::start(DEFAULT_DEADLINE)?;
        if size > 1 {
            end_job_on_panic(rank);
        }
        Ok(Group::with_transport(Box::new(transport), rank, size))
    }

    #[cfg(not(feature = "mpi"))]
    fn from_launcher(size: usize) -> Result<Group> {
        if size == 1 { Ok(Group::alone()) } else { Err(Error::BuiltWithoutMpi { size }) }
    }

    /// Returns a group of this process alone.
    pub fn alone() -> Group {
        let [alone] = Group::in_process();
        alone
    }

    /// Returns one group for each of `N` ranks that are threads of this process. Use it to test programs that run on many machines.
    ///
    /// ```
    /// # use wengert_tensor as wengert;
    /// use std::thread;
    /// use wengert_distributed::{Group, Reduce};
    /// use wengert::prelude::*;
    ///
    /// thread::scope(|scope| {
    ///     for group in Group::in_process::<3>() {
    ///         scope.spawn(move || {
    ///             let own = Tensor::from([group.rank() as f32, 1.0]);
    ///             assert_eq!(group.all_reduce(&own, Reduce::Sum).unwrap().to_vec(), [3.0, 3.0]);
    ///         });
    ///     }
    /// });
    /// ```
    pub fn in_process<const N: usize>() -> [Group; N] {
        let mut ends = Threads::of_size(N).into_iter();
        std::array::from_fn(|rank| {
            let ends: Box<dyn Transport> = Box::new(ends.next().expect("there are N"));
            Group::with_transport(ends, rank, N)
        })
    }

    fn with_transport(transport: Box<dyn Transport>, rank: usize, size: usize) -> Group {
        Group { rank, size, transport, deadline: Cell::new(DEFAULT_DEADLINE), traffic: Cell::default() }
    }

    /// Returns the index of this process among the ranks, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns true on rank 0. Only this rank prints in [`print`](Self::print) and writes the file in [`save`](Self::save).
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// Sets the longest time for which this rank waits in one exchange of messages. The default is 120 s, or the value of
    /// `WENGERT_DEADLINE` in a group from [`world`](Self::world) with a launcher. An operation makes one or more exchanges. The time must
    /// exceed the longest time that a rank computes between two operations.
    pub fn set_deadline(&self, deadline: Duration) {
        self.deadline.set(deadline);
    }

    /// Returns the longest time for which this rank waits for others.
    pub fn deadline(&self) -> Duration {
        self.deadline.get()
    }

    /// Returns the amount of data that this rank has sent since the group was made.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// Returns this rank's range of `count` items, such as files or rows. The sizes of the ranges differ by at most
    /// one.
    pub fn share(&self, count: usize) -> std::ops::Range<usize> {
        part_range(count, self.size, self.rank)
    }

    /// Prints a line on rank 0 only, such as the progress of a training run. If the output is closed or full, the line is lost without an
    /// error.
    pub fn print(&self, line: impl Display) {
        if self.is_first() {
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }

    /// Logs a warning that names this rank.
    pub fn warn(&self, text: impl Display) {
        log::warn!("rank {} of {}: {text}", self.rank, self.size);
    }

    /// Starts an exchange of messages for the operation named `operation`, and adds its messages and bytes to the traffic.
    pub(crate) fn start_exchange(&self, operation: &'static str, exchange: Exchange) -> PendingExchange {
        let Traffic { mut messages, mut bytes } = self.traffic.get();
        messages += exchange.sends.len() as u64;
        bytes += exchange.sends.iter().map(|(_, payload)| payload.size() as u64).sum::<u64>();
        if let Some(summed) = &exchange.summed {
            // With the usual algorithms of MPI (ring, recursive halving), a rank sends at least this number of bytes.
            bytes += 2 * (summed.size() * (self.size - 1) / self.size) as u64;
            messages += 1;
        }
        self.traffic.set(Traffic { messages, bytes });
        PendingExchange { pending: self.transport.start(exchange), operation }
    }

    /// Waits for a started exchange, and returns the exchange with the received messages. Returns [`Error::Lost`] if
    /// the exchange is not complete at the deadline.
    pub(crate) fn finish_exchange(&self, started: PendingExchange) -> Result<Exchange> {
        let (operation, waited) = (started.operation, self.deadline.get());
        let lost = |Stalled { silent, late }| Error::Lost { rank: self.rank, operation, waited, silent, late };
        started.pending.wait(waited).map_err(lost)
    }

    /// Returns true if the transport can sum over ranks, as MPI does.
    pub(crate) fn can_sum(&self) -> bool {
        self.transport.can_sum()
    }

    /// Returns the indices of the other ranks. Each rank begins with its successor, so that not all ranks send to the same rank at once.
    pub(crate) fn other_ranks(&self) -> impl Iterator<Item = usize> + use<> {
        let (rank, size) = (self.rank, self.size);
        (1..size).map(move |step| (rank + step) % size)
    }

    /// Sends `bytes` to all ranks, and returns the bytes of every rank. Rank `r` sends `sizes[r]` bytes. This method makes a single
    /// exchange of messages, and does not check that all ranks called it.
    pub(crate) fn all_gather_bytes(
        &self,
        operation: &'static str,
        bytes: Vec<u8>,
        sizes: &[usize],
    ) -> Result<Vec<Vec<u8>>> {
        let own = Arc::new(Payload::Bytes(bytes));
        let sends = self.other_ranks().map(|rank| (rank, Arc::clone(&own))).collect();
        let receives = self.other_ranks().map(|rank| (rank, Payload::Bytes(vec![0; sizes[rank]]))).collect();
        let started = self.start_exchange(operation, Exchange { sends, receives, summed: None });
        let mut all = vec![Vec::new(); self.size];
        for (rank, payload) in self.finish_exchange(started)?.receives {
            all[rank] = payload.into_bytes();
        }
        all[self.rank] = Arc::unwrap_or_clone(own).into_bytes();
        Ok(all)
    }

    /// Checks that all ranks called the operation `operation`, and with the same `description` of its arguments.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on every rank, if the ranks differ; [`Error::Lost`].
    pub(crate) fn check_agreement(&self, operation: &'static str, description: &str) -> Result<()> {
        if self.size == 1 {
            return Ok(());
        }
        let text = format!("{operation} of {description}");
        let digest = [hash([text.as_bytes()]), text.len() as u64].map(u64::to_le_bytes).concat();
        let digests = self.all_gather_bytes(operation, digest, &vec![16; self.size])?;
        if digests.iter().all(|other| *other == digests[0]) {
            return Ok(());
        }
        // The ranks differ. A second exchange sends the descriptions themselves, and not only their hashes, for the error message.
        let length =
            |digest: &Vec<u8>| digest.as_chunks::<8>().0.get(1).map_or(0, |&length| u64::from_le_bytes(length));
        let sizes: Vec<usize> = digests.iter().map(|digest| length(digest) as usize).collect();
        let texts = self.all_gather_bytes(operation, text.into_bytes(), &sizes)?;
        let descriptions = texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        Err(Error::Mismatch { descriptions })
    }

    /// Waits until all ranks have called this method. MPI: `MPI_Barrier`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on every rank, if a rank called another operation; [`Error::Lost`].
    pub fn barrier(&self) -> Result<()> {
        self.check_agreement("barrier", "nothing")
    }

    /// Returns true if `flag` is set on any rank: for example, a signal came, or the loss is not finite. All ranks get
    /// the same answer.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on every rank, if a rank called another operation; [`Error::Lost`].
    pub fn any(&self, flag: bool) -> Result<bool> {
        self.check_agreement("any", "a flag")?;
        let flags = self.all_gather_bytes("any", vec![flag.into()], &vec![1; self.size])?;
        Ok(flags.iter().any(|flag| flag[..] == [1]))
    }

    /// Sends the text of rank `root` to all ranks, and returns this text. The other ranks' `text` is ignored. Returns
    /// an error only if a rank was lost.
    pub(crate) fn broadcast_text(&self, root: usize, text: &str) -> Result<String> {
        let own = if self.rank == root { text.as_bytes().to_vec() } else { Vec::new() };
        let lengths = self.all_gather_bytes("text", (own.len() as u64).to_le_bytes().to_vec(), &vec![8; self.size])?;
        let length = |bytes: &Vec<u8>| bytes.as_chunks::<8>().0.first().map_or(0, |&length| u64::from_le_bytes(length));
        let sizes: Vec<usize> = lengths.iter().map(|bytes| length(bytes) as usize).collect();
        let texts = self.all_gather_bytes("text", own, &sizes)?;
        Ok(String::from_utf8_lossy(&texts[root]).into_owned())
    }
}

/// Returns a 64-bit hash of the parts. The hash is the same in every process that runs the same build of a program.
pub(crate) fn hash<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.into_iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

/// Returns the value of the first environment variable in `names` that contains a number, or `None` if there is none.
fn first_number_in_env(names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| env::var(name).ok()?.trim().parse().ok())
}

/// Returns the time that `text`, the value of `WENGERT_DEADLINE`, gives in seconds. Returns an error if `text` is not a
/// number of seconds.
fn parse_seconds(text: &OsStr) -> Result<Duration> {
    let seconds = text.to_str().and_then(|text| text.trim().parse().ok());
    let reason = "`WENGERT_DEADLINE` must be a number of seconds, at least 0";
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or(Error::Start { reason })
}

/// Returns the number of this machine's cores divided by the number of ranks on this machine, but at least 1. If the
/// launcher binds this process to fewer cores, returns the number of these cores.
fn cores_per_rank() -> usize {
    let bound = available_parallelism().map_or(1, usize::from);
    let listed = fs::read_to_string("/proc/cpuinfo")
        .map_or(0, |text| text.lines().filter(|line| line.starts_with("processor")).count());
    let local =
        first_number_in_env(&["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"]).unwrap_or(1);
    bound.min(listed.max(bound) / local.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_mismatch_names_the_ranks() {
        thread::scope(|scope| {
            for group in Group::in_process::<3>() {
                scope.spawn(move || {
                    let description = if group.rank() == 1 { "f64 [3]" } else { "f32 [2]" };
                    let error = group.check_agreement("all_reduce", description).unwrap_err().to_string();
                    let expected = "the ranks differ: ranks 0 and 2 called all_reduce of f32 [2]; rank 1 called \
                                    all_reduce of f64 [3]";
                    assert_eq!(error, expected);
                    // The group can still be used after the error.
                    group.barrier().unwrap();
                });
            }
        });
    }

    #[test]
    fn a_rank_that_does_not_come_is_named() {
        let [first, second, third] = Group::in_process::<3>();
        thread::scope(|scope| {
            for group in [first, third] {
                scope.spawn(move || {
                    group.set_deadline(Duration::from_millis(50));
                    let error = group.barrier().unwrap_err();
                    assert!(
                        matches!(&error, Error::Lost { late, operation: "barrier", .. } if late == &[1]),
                        "{error}"
                    );
                });
            }
        });
        drop(second);
    }

    #[test]
    fn a_wrong_deadline_is_an_error() {
        assert_eq!(parse_seconds(OsStr::new(" 2.5 ")).unwrap(), Duration::from_millis(2500));
        for text in ["", "abc", "-1", "nan", "inf"] {
            let error = parse_seconds(OsStr::new(text)).unwrap_err().to_string();
            assert!(error.contains("`WENGERT_DEADLINE` must be a number of seconds"), "{error}");
        }
    }

    #[test]
    fn a_flag_on_one_rank_is_seen_by_all() {
        thread::scope(|scope| {
            for group in Group::in_process::<4>() {
                scope.spawn(move || {
                    assert!(group.any(group.rank() == 2).unwrap());
                    assert!(!group.any(false).unwrap());
                    assert_eq!(group.broadcast_text(1, &format!("from {}", group.rank())).unwrap(), "from 1");
                });
            }
        });
    }
}
