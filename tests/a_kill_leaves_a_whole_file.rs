//! A process that is killed (SIGKILL) while it writes a checkpoint leaves the old or the new file, and the next write
//! removes its temporary file. The killed process is this program with [`child`] as its only test.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use wengert::nn::Checkpoint;
use wengert::prelude::*;

/// The environment variable with the file that the child writes.
const FILE: &str = "WENGERT_TEST_WRITTEN_FILE";

/// The number of elements of the model's weight. One write takes about as long as the other steps of a replacement.
const SIZE: usize = 1 << 18;

/// Returns the checkpoint of a model whose weight has the value `number` in each element.
fn checkpoint(number: u64) -> Checkpoint {
    let mut model = Linear::<f32>::new(1, 1, &mut Generator::new(0));
    model.weight.value = Tensor::full([SIZE], number as f32);
    Checkpoint::new().model(&model).integer("number", number)
}

#[test]
fn child() {
    if let Some(path) = env::var_os(FILE) {
        println!("starts");
        for number in 0.. {
            checkpoint(number).save(&path).unwrap();
        }
    }
}

/// Checks that the file is complete: all its parts come from the same write.
fn is_whole(path: &Path) {
    let saved = Checkpoint::open(path).unwrap();
    let number = saved.integer("number").unwrap();
    let mut model = Linear::<f32>::new(1, 1, &mut Generator::new(0));
    model.weight.value = Tensor::zeros([SIZE]);
    saved.load_model(&mut model).unwrap();
    assert!(model.weight.value.iter().all(|value| value == number as f32));
}

#[test]
fn thirty_kills_leave_no_broken_file_and_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    checkpoint(0).save(&path).unwrap();
    let mut moments = Generator::new(1);
    for _ in 0..30 {
        let program = env::current_exe().unwrap();
        let arguments = ["--exact", "a_kill_leaves_a_whole_file::child", "--nocapture", "--test-threads=1"];
        let mut command = Command::new(program);
        let mut child = command.args(arguments).env(FILE, &path).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.contains("starts")));
        // Any part of a write can be hit, since a write takes a few milliseconds.
        thread::sleep(Duration::from_micros(moments.below(15_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        is_whole(&path);
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert!(files <= 2, "{files} files: leftovers of earlier processes were not removed");
    }
    checkpoint(1).save(&path).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
