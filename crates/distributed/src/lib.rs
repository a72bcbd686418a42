//! Training on several machines over MPI. The result has the same bits on any number of machines up to the number of parts (shards) into
//! which a batch is divided.
//!
//! A launcher starts the program once on each machine, or several times on one machine: `mpirun -n 4 program`, or `srun
//! program`. Each process is a *rank* of one [`Group`]. Without a launcher the group has one rank, and the program
//! works unchanged. The feature `mpi` adds MPI itself.
//!
//! ```
//! # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
//! use wengert::prelude::*;
//! use wengert_distributed::{DataParallel, Group};
//! use wengert::nn::{Adam, Generator, Layer, Linear, cross_entropy};
//!
//! let group = Group::world()?;
//! let generator = &mut Generator::new(0); // the same seed on all ranks
//! let mut model = Linear::<f32>::new(4, 3, generator);
//! let mut parallel = DataParallel::new(&group, &mut model, Adam::new(0.01))?.sharded(&model);
//! for epoch in 0..2 {
//!     let (x, y) = (Tensor::randn([32, 4], generator), Tensor::randint(0, 3, [32], generator));
//!     let step = parallel.step_recorded(&mut model, 32, generator, |model, tape, shard| {
//!         let (x, y) = (shard.of(&x), shard.of(&y));
//!         Ok(cross_entropy(&model.forward(tape.constant(&x)), &y))
//!     })?;
//!     group.print(format_args!("epoch {epoch}: loss {:.3}", step.loss));
//! }
//! # Ok::<(), wengert_distributed::Error>(())
//! ```
//!
//! | what | where |
//! |---|---|
//! | the number of ranks; broadcast, all-reduce, reduce-scatter, all-gather, barrier | [`Group`] |
//! | steps over a batch that is divided among the ranks, sharded optimiser states and parameters, checkpoints | [`DataParallel`] |
//! | batch normalization with the statistics of all ranks | [`SyncBatchNorm`] |
//! | the mean of the gradients that each rank computed from its own batch | [`Group::average`] |
//! | metrics over all rows | [`Group::sum_rows`], [`Group::sum`] |
//! | the order of rows; each rank reads its own rows | [`Rows`] |
//! | errors that end the job, signals | [`run`], [`Error`], [`StopSignal`] |
//!
//! `docs/distributed.md` says how to start programs, what is guaranteed and how training scales.

mod collective;
mod data;
mod error;
mod flat;
mod group;
mod launch;
#[cfg(feature = "mpi")]
mod panics;
mod parallel;
mod parameter_shards;
mod payload;
mod recorded;
mod reduction;
mod replicas;
mod sharded_step;
mod sync;
mod sync_batch_norm;
mod transport;
mod tree;

pub use collective::Reduce;
pub use data::Rows;
pub use error::{EXIT_LOST, Error, Result};
pub use group::{Group, Traffic};
pub use launch::{StopSignal, run};
pub use parallel::{DataParallel, Shard, Step};
pub use sync_batch_norm::SyncBatchNorm;
