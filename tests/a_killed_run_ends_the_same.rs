//! A training run that is killed (SIGKILL) and resumed from its last checkpoint ends with the same bits as an uninterrupted
//! run. The test compares weights, running statistics, moments and the state of the generator.
//!
//! The run is a separate process: this program with [`child`] as its only test.

#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use wengert::nn::schedule::CosineAnnealingLR;
use wengert::nn::{Checkpoint, Schedule};
use wengert::prelude::*;

/// The environment variable that contains the folder in which the child trains.
const FOLDER: &str = "WENGERT_TEST_RUN";

const STEPS: u64 = 240;

/// Trains from the last checkpoint in the folder, or from the start. Saves after every third step.
fn run(folder: &Path) -> wengert::nn::Result<()> {
    let path = folder.join("run.safetensors");
    let mut generator = Generator::new(7);
    let mut model: Sequential = Sequential::new()
        .add(Linear::new(6, 16, &mut generator))
        .add(BatchNorm1d::new(16))
        .add(ReLU)
        .add(Dropout::new(0.25))
        .add(Linear::new(16, 3, &mut generator));
    let mut adam = Adam::new(0.01).amsgrad().group("4", |adam| adam.weight_decay(0.01));
    let mut first = 0;
    if path.exists() {
        let saved = Checkpoint::open(&path)?;
        saved.load_model(&mut model)?;
        saved.load_optimizer("adam", &mut adam, &model)?;
        (generator, first) = (saved.generator()?, saved.integer("step")?);
    }
    let schedule = CosineAnnealingLR::new(0.01, STEPS);
    for step in first..STEPS {
        adam.set_lr(schedule.lr(step));
        let (x, y) = (Tensor::randn([12, 6], &mut generator), Tensor::randint(0, 3, [12], &mut generator));
        let (_, mut gradients) = Tape::training(&mut generator)
            .value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &y));
        gradients.clip_norm(1.0);
        adam.step(&mut model, &gradients);
        if (step + 1) % 3 == 0 {
            Checkpoint::new()
                .model(&model)
                .optimizer("adam", &adam, &model)
                .generator(&generator)
                .integer("step", step + 1)
                .save(&path)?;
        }
        println!("step {step}");
    }
    Ok(())
}

#[test]
fn child() {
    if let Some(folder) = env::var_os(FOLDER) {
        run(Path::new(&folder)).unwrap();
    }
}

/// Starts the run as a process whose output can be read.
fn start(folder: &Path) -> Child {
    let program = env::current_exe().unwrap();
    let arguments = ["--exact", "a_killed_run_ends_the_same::child", "--nocapture", "--test-threads=1"];
    Command::new(program).args(arguments).env(FOLDER, folder).stdout(Stdio::piped()).spawn().unwrap()
}

/// Lets the run make at least `steps` steps, or end, and then kills it.
fn killed_after(folder: &Path, steps: u64) {
    let mut child = start(folder);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let made = lines.map_while(Result::ok).filter(|line| line.starts_with("step ")).take(steps as usize);
    made.for_each(drop);
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn ten_kills_do_not_change_the_result() {
    let (calm, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert!(start(calm.path()).wait_with_output().unwrap().status.success());
    let mut moments = Generator::new(1);
    for _ in 0..10 {
        // The kill can interrupt any part of a step or of a save.
        killed_after(killed.path(), 1 + moments.below(20));
    }
    assert!(start(killed.path()).wait_with_output().unwrap().status.success());
    let bytes = |folder: &Path| fs::read(folder.join("run.safetensors")).unwrap();
    assert!(bytes(calm.path()) == bytes(killed.path()), "the two runs end with different checkpoints");
    let saved = Checkpoint::open(killed.path().join("run.safetensors")).unwrap();
    assert_eq!(saved.integer("step").unwrap(), STEPS);
}
