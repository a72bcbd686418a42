//! A training run that a signal ends (SIGKILL, SIGTERM or SIGINT) and that is resumed from its last checkpoint ends with the same bits as an
//! uninterrupted run. The test compares weights, running statistics, moments and the state of the generator.
//!
//! The run is a separate process: this program with [`child`] as its only test.

#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
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

/// Lets the run make at least `steps` steps, or end, and then sends it a signal. The last checkpoint can be read afterwards.
fn stopped_after(folder: &Path, steps: u64, signal: &str) {
    let mut child = start(folder);
    // The pipe stays open until the process has ended. Otherwise the next step could fail to write its line before the signal comes.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.by_ref().filter(|line| line.starts_with("step ")).take(steps as usize).for_each(drop);
    // The run may have ended before, so the command may fail.
    let command = ["-s", signal, &child.id().to_string()].map(String::from);
    let sent = Command::new("kill").args(command).stderr(Stdio::null()).status().unwrap();
    let status = child.wait().unwrap();
    assert!(status.success() || sent.success() && status.signal() == Some(number_of(signal)), "{signal}: {status}");
    let path = folder.join("run.safetensors");
    if path.exists() {
        assert_eq!(Checkpoint::open(&path).unwrap().integer("step").unwrap() % 3, 0);
    }
}

/// Returns the number of a signal on Unix.
fn number_of(signal: &str) -> i32 {
    match signal {
        "INT" => 2,
        "KILL" => 9,
        _ => 15,
    }
}

#[test]
fn twelve_signals_do_not_change_the_result() {
    let (calm, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert!(start(calm.path()).wait_with_output().unwrap().status.success());
    let mut moments = Generator::new(1);
    for signal in ["KILL", "TERM", "INT"].repeat(4) {
        // The signal can interrupt any part of a step or of a save.
        stopped_after(killed.path(), 1 + moments.below(20), signal);
    }
    assert!(start(killed.path()).wait_with_output().unwrap().status.success());
    let bytes = |folder: &Path| fs::read(folder.join("run.safetensors")).unwrap();
    assert!(bytes(calm.path()) == bytes(killed.path()), "the two runs end with different checkpoints");
    let saved = Checkpoint::open(killed.path().join("run.safetensors")).unwrap();
    assert_eq!(saved.integer("step").unwrap(), STEPS);
}
