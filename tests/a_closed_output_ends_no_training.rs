//! Training continues if the reader of its output goes away, as in `train | head -1`. A child process trains, because the
//! output belongs to the process.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use wengert::nn::{Fit, Progress};
use wengert::prelude::*;

/// The environment variable with the folder in which the child trains.
const FOLDER: &str = "WENGERT_TEST_CLOSED_OUTPUT";

const EPOCHS: u64 = 50;

#[test]
fn child() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let data = Samples::new(Tensor::<f32>::ones([8, 2]), Tensor::<i64>::zeros([8])).unwrap();
    let mut model = Linear::new(2, 2, &mut Generator::new(0));
    let history = Fit::new(EPOCHS).progress(Progress::Lines).folder(&folder).run(
        &mut model,
        &mut Sgd::new(0.1),
        &DataLoader::new(data, 4),
        &mut Generator::new(0),
        |model, tape, x| model.forward(tape.constant(x)),
        |logits, classes| cross_entropy(&logits, classes),
    );
    fs::write(Path::new(&folder).join("result"), format!("{:?}", history.map(|history| history.epochs().len())))
        .unwrap();
}

#[test]
fn the_reader_of_the_output_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let program = env::current_exe().unwrap();
    let arguments = ["--exact", "a_closed_output_ends_no_training::child", "--nocapture", "--test-threads=1"];
    let mut command = Command::new(program);
    command.args(arguments).env(FOLDER, folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // Reads the first line of the training, then closes the pipe.
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.map_while(Result::ok).find(|line| line.contains("epoch  1/50"));
    assert!(first.is_some());
    // The test runner itself may fail on the closed output, so only the file counts.
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("result")).unwrap(), format!("Ok({EPOCHS})"));
}
