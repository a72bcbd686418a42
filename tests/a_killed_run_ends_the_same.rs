//! A training run that a signal ends (SIGKILL, SIGTERM or SIGINT) and that is resumed from its last checkpoint ends with the same bits as an
//! uninterrupted run. The test compares weights, running statistics, moments and the state of the generator.
//!
//! The run is a separate process: this program with [`child`] as its only test.

#![cfg(unix)]

use std::io::{BufRead, BufReader, sink, stdin};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, fs, io};

use wengert::nn::schedule::CosineAnnealingLR;
use wengert::nn::{Checkpoint, Schedule};
use wengert::prelude::*;

/// The environment variable that contains the folder in which the child trains.
const FOLDER: &str = "WENGERT_TEST_RUN";

const STEPS: u64 = 240;

/// The line that the child writes after its last step.
const LAST_LINE: &str = "all steps are made";

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
        println!("{LAST_LINE}");
        // A signal to a process that has ended would have no effect, so the process waits until its input is closed.
        io::copy(&mut stdin(), &mut sink()).unwrap();
    }
}

/// Starts the run as a process whose output can be read. The process does not end before its input is closed.
fn start(folder: &Path) -> Child {
    let program = env::current_exe().unwrap();
    let arguments = ["--exact", "a_killed_run_ends_the_same::child", "--nocapture", "--test-threads=1"];
    Command::new(program)
        .args(arguments)
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets the run make at least `steps` steps, or all that are left, and then ends it by a signal with this name and number. The last
/// checkpoint can be read afterwards.
fn stop_after(folder: &Path, steps: u64, (signal, number): (&str, i32)) {
    let mut child = start(folder);
    // The pipe stays open until the process has ended. Otherwise the next step could fail to write its line before the signal comes.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let outputs = lines.by_ref().take_while(|line| !line.ends_with(LAST_LINE));
    outputs.filter(|line| line.starts_with("step ")).take(steps as usize).for_each(drop);
    assert!(Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(number), "{signal}: {status}");
    let path = folder.join("run.safetensors");
    if path.exists() {
        assert_eq!(Checkpoint::open(&path).unwrap().integer("step").unwrap() % 3, 0);
    }
}

/// Returns true if the signal ends new processes. A process inherits the signals that it ignores, for example SIGINT in the background of a
/// shell.
fn ends_processes(signal: &str) -> bool {
    let status = Command::new("sh").args(["-c", &format!("kill -s {signal} $$")]).status().unwrap();
    if status.signal().is_none() {
        println!("SIG{signal} is ignored here, so the test does not send it");
    }
    status.signal().is_some()
}

#[test]
fn twelve_signals_do_not_change_the_result() {
    let (calm, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert!(start(calm.path()).wait_with_output().unwrap().status.success());
    let mut moments = Generator::new(1);
    let signals = [("KILL", 9), ("TERM", 15), ("INT", 2)].into_iter().filter(|(signal, _)| ends_processes(signal));
    for signal in signals.collect::<Vec<_>>().into_iter().cycle().take(12) {
        // The signal can interrupt any part of a step or of a save.
        stop_after(killed.path(), 1 + moments.below(20), signal);
    }
    assert!(start(killed.path()).wait_with_output().unwrap().status.success());
    let bytes = |folder: &Path| fs::read(folder.join("run.safetensors")).unwrap();
    assert!(bytes(calm.path()) == bytes(killed.path()), "the two runs end with different checkpoints");
    let saved = Checkpoint::open(killed.path().join("run.safetensors")).unwrap();
    assert_eq!(saved.integer("step").unwrap(), STEPS);
}
