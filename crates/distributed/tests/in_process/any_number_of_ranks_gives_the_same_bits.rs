//! Training writes the same checkpoint on 1, 2, 3 and 4 ranks, byte for byte. The ranks here are threads.

use std::path::Path;
use std::process::Command;
use std::{env, fs, thread};

use wengert_autograd::prelude::*;
use wengert_distributed::{DataParallel, Error, Group, Result};
use wengert_nn::{
    Adam, AdamW, BatchNorm1d, Checkpoint, Dropout, Generator, Layer, Linear, Module, NAdam, Optimizer, ReLU,
    Sequential, Sgd,
};

const ROWS: [usize; 4] = [24, 24, 13, 3];

#[derive(Clone, Copy, Debug)]
struct Way {
    sharded: bool,
    every: usize,
    clip: bool,
}

fn model(generator: &mut Generator) -> Sequential {
    Sequential::new()
        .add(Linear::new(20, 70, generator))
        .add(BatchNorm1d::new(70))
        .add(ReLU)
        .add(Dropout::new(0.25))
        .add(Linear::new(70, 50, generator))
        .add(Linear::new(50, 3, generator))
}

/// Trains twelve steps, with a restart from a checkpoint after eight, and writes the final checkpoint to `path`.
fn train<O: Optimizer>(group: &Group, optimizer: &O, way: Way, path: &Path) -> Result<()> {
    let generator = &mut Generator::new(group.rank() as u64);
    let (mut model, mut resumed) = (model(generator), model(generator));
    let start = |model: &mut Sequential| -> Result<DataParallel<'_, O>> {
        let mut parallel = DataParallel::new(group, model, optimizer.clone())?.send_every(way.every);
        if way.clip {
            parallel = parallel.clip_norm(0.5);
        }
        Ok(if way.sharded { parallel.sharded(model) } else { parallel })
    };
    let mut generator = Generator::new(7);
    let steps = |parallel: &mut DataParallel<'_, O>, model: &mut Sequential, generator: &mut Generator| {
        for rows in ROWS {
            let (x, y) = (Tensor::randn([rows, 20], generator), Tensor::randint(0, 3, [rows], generator));
            let step = parallel.step(model, rows, generator, |model, shard| {
                let (x, y) = (shard.of(&x), shard.of(&y));
                // `BatchNorm1d` refuses a batch of one row, so each row of a shard is used twice.
                let (x, y) = (cat(&[x.clone(), x], 0), cat(&[y.clone(), y], 0));
                Ok(Tape::training(&mut shard.generator)
                    .value_and_gradients(|tape| wengert_nn::cross_entropy(&model.forward(tape.constant(&x)), &y)))
            })?;
            assert!(step.loss.is_finite());
        }
        Ok::<(), Error>(())
    };
    let mut parallel = start(&mut model)?;
    steps(&mut parallel, &mut model, &mut generator)?;
    steps(&mut parallel, &mut model, &mut generator)?;
    let checkpoint = parallel.checkpoint("optimizer", &model)?.map(|checkpoint| checkpoint.generator(&generator));
    group.save(checkpoint, path)?;

    let mut parallel = start(&mut resumed)?;
    let saved = Checkpoint::open(path)?;
    parallel.load(&saved, "optimizer", &mut resumed)?;
    steps(&mut parallel, &mut resumed, &mut saved.generator()?)?;
    let checkpoint = parallel.checkpoint("optimizer", &resumed)?;
    group.save(checkpoint, path)
}

fn on_ranks<const N: usize, O: Optimizer + Send + Sync>(optimizer: &O, way: Way, folder: &Path) -> Vec<u8> {
    let path = &folder.join(format!("{N}.safetensors"));
    thread::scope(|scope| {
        for group in Group::in_process::<N>() {
            scope.spawn(move || train(&group, optimizer, way, path).unwrap());
        }
    });
    fs::read(path).unwrap()
}

fn check<O: Optimizer + Send + Sync>(optimizer: O) {
    let folder = tempfile::tempdir().unwrap();
    let way = |sharded, every, clip| Way { sharded, every, clip };
    for clip in [false, true] {
        let expected = on_ranks::<1, O>(&optimizer, way(false, usize::MAX, clip), folder.path());
        for way in [way(false, usize::MAX, clip), way(true, usize::MAX, clip), way(true, 1, clip)] {
            let folder = folder.path();
            assert!(on_ranks::<1, O>(&optimizer, way, folder) == expected, "{way:?} on 1 rank");
            assert!(on_ranks::<2, O>(&optimizer, way, folder) == expected, "{way:?} on 2 ranks");
            assert!(on_ranks::<3, O>(&optimizer, way, folder) == expected, "{way:?} on 3 ranks");
            assert!(on_ranks::<4, O>(&optimizer, way, folder) == expected, "{way:?} on 4 ranks");
        }
    }
}

#[test]
fn with_momentum() {
    check(Sgd::new(0.05).momentum(0.9).group("4", |sgd| sgd.lr(0.01)));
}

#[test]
fn with_adamw_and_a_group() {
    check(AdamW::new(0.01).group("0.bias", |adam: Adam| adam.weight_decay(0.0)));
}

#[test]
fn with_states_of_one_number() {
    check(NAdam::new(0.01));
}

#[test]
fn states_are_divided() {
    thread::scope(|scope| {
        for group in Group::in_process::<4>() {
            scope.spawn(move || {
                let generator = &mut Generator::new(0);
                let mut model = Linear::<f32>::new(256, 256, generator);
                let mut parallel = DataParallel::new(&group, &mut model, Adam::new(0.1)).unwrap().sharded(&model);
                let x = Tensor::ones([8, 256]);
                let compute = |model: &Linear, shard: &mut wengert_distributed::Shard| {
                    Ok(Tape::new()
                        .value_and_gradients(|tape| model.forward(tape.constant(shard.of(&x))).square().mean(..)))
                };
                parallel.step(&mut model, 8, generator, compute).unwrap();
                // Adam has two states of 4 bytes for each parameter element. A rank has a quarter of them, rounded to whole blocks of 1,024
                // elements.
                let quarter = model.num_parameters() / 4;
                assert!(parallel.state_bytes(&model).abs_diff(2 * 4 * quarter) <= 2 * 4 * 1024);
                // It is an error to freeze parameters after the states are divided.
                model.freeze("bias");
                let error = parallel.step(&mut model, 8, generator, compute).unwrap_err();
                assert!(matches!(error, Error::FrozenChanged), "{error}");
            });
        }
    });
}

/// Takes a step with a batch of ones.
fn step_of_ones(parallel: &mut DataParallel<'_, Adam>, model: &mut Linear) {
    let x = Tensor::ones([8, 100]);
    let step = parallel.step(model, 8, &mut Generator::new(0), |model, shard| {
        Ok(Tape::new().value_and_gradients(|tape| model.forward(tape.constant(shard.of(&x))).square().mean(..)))
    });
    step.unwrap();
}

/// Returns the bytes of the checkpoint, which is written to the file `path`.
fn saved(group: &Group, parallel: &DataParallel<'_, Adam>, model: &Linear, path: &Path) -> Vec<u8> {
    group.save(parallel.checkpoint("optimizer", model).unwrap(), path).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn checkpoints_keep_the_states_of_frozen_parameters() {
    let folder = &tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    thread::scope(|scope| {
        for group in Group::in_process::<3>() {
            scope.spawn(move || {
                let group = &group;
                let start = |model: &mut Linear| DataParallel::new(group, model, Adam::new(0.1)).unwrap();
                let mut model = Linear::<f32>::new(100, 50, &mut Generator::new(0));
                let mut parallel = start(&mut model).sharded(&model);
                let empty = saved(group, &parallel, &model, &path("empty"));
                step_of_ones(&mut parallel, &mut model);
                let stepped = saved(group, &parallel, &model, &path("stepped"));
                // Parameters are frozen after the states are divided.
                model.freeze("weight");
                assert_eq!(saved(group, &parallel, &model, &path("frozen")), stepped);
                // Parameters are frozen before the states are divided, and the states are loaded after or before the division.
                let mut after = start(&mut model).sharded(&model);
                after.load(&Checkpoint::open(path("stepped")).unwrap(), "optimizer", &mut model).unwrap();
                assert_eq!(saved(group, &after, &model, &path("after")), stepped);
                assert!(after.state_bytes(&model) >= 2 * 4 * 100 * 50);
                let mut before = start(&mut model);
                before.load(&Checkpoint::open(path("stepped")).unwrap(), "optimizer", &mut model).unwrap();
                let before = before.sharded(&model);
                assert_eq!(saved(group, &before, &model, &path("before")), stepped);
                // Loading a file without states removes the states of this rank's slice.
                parallel.load(&Checkpoint::open(path("empty")).unwrap(), "optimizer", &mut model).unwrap();
                assert_eq!(saved(group, &parallel, &model, &path("again")), empty);
            });
        }
    });
}

#[test]
fn mistakes_are_errors_on_every_rank() {
    thread::scope(|scope| {
        for group in Group::in_process::<3>() {
            scope.spawn(move || {
                let generator = &mut Generator::new(0);
                let mut model = Linear::<f32>::new(4, 1, generator);
                let mut parallel = DataParallel::new(&group, &mut model, Sgd::new(0.1)).unwrap();
                let x = Tensor::ones([8, 4]);
                let compute = |model: &Linear, shard: &mut wengert_distributed::Shard| {
                    Ok(Tape::new()
                        .value_and_gradients(|tape| model.forward(tape.constant(shard.of(&x))).square().mean(..)))
                };
                let rows = 8 - usize::from(group.rank() == 1);
                let error = parallel.step(&mut model, rows, generator, compute).unwrap_err().to_string();
                assert!(error.contains("rank 1 called step of 7 rows"), "{error}");
                assert!(matches!(parallel.step(&mut model, 0, generator, compute), Err(Error::NoRows)));
                let mut few = DataParallel::new(&group, &mut model, Sgd::new(0.1)).unwrap().shards(2);
                let error = few.step(&mut model, 8, generator, compute).unwrap_err();
                assert!(matches!(error, Error::TooFewShards { shards: 2, size: 3 }));
                let error = group.sum_rows(4, 0, |_| Ok([0.0])).unwrap_err().to_string();
                assert!(error.contains("one row and one shard"), "{error}");
                // One rank calls another operation, and the group still works.
                let mut parallel = parallel.sharded_parameters(&mut model);
                let odd = group.rank() == 1;
                let error = if odd { group.barrier() } else { parallel.gather(&mut model) }.unwrap_err().to_string();
                assert!(error.contains("rank 1 called barrier") && error.contains("called gather"), "{error}");
                parallel.gather(&mut model).unwrap();
                let error = if odd { group.barrier() } else { group.save(None, "") }.unwrap_err().to_string();
                assert!(error.contains("rank 1 called barrier") && error.contains("called save"), "{error}");
                group.save(None, "").unwrap();
            });
        }
    });
}

/// Runs the example `train_mpi`, which `cargo test` builds too.
#[test]
fn the_example_runs_alone() {
    let program = env::current_exe().unwrap().parent().unwrap().with_file_name("examples").join("train_mpi");
    let output = Command::new(&program).args(["--model", "cnn", "--steps", "3", "--sharded"]).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; `cargo build --examples`", program.display()));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 ranks: "), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
