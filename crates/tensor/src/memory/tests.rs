//! Tests in a forked process. The new process has only the thread that called `fork`, so the library's helper threads do not exist in it.
#![allow(unsafe_code)]
#![cfg(target_os = "linux")]

use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::prelude::*;
use crate::set_num_threads;

/// The environment variable that makes [`the_forked_process`] run.
const FORKS: &str = "WENGERT_TEST_FORKS";

/// Returns a sum over a tensor that several threads process.
fn computed() -> f64 {
    let x = Tensor::<f64>::arange(1 << 20);
    (&x * 2.0 + 1.0).sqrt().sum(..).item()
}

/// Forks after the helper threads have started, and computes in the parent process and in the new one. [`a_forked_process_computes`] runs
/// this test in a separate process.
#[test]
fn the_forked_process() {
    if env::var_os(FORKS).is_none() {
        return;
    }
    set_num_threads(4);
    let expected = computed();
    // SAFETY: this process has no other thread that holds a lock: its only test runs here, and the helpers wait for work.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_equal = computed().to_bits() == expected.to_bits();
        // SAFETY: this ends the forked process at once, without the destructors that belong to the parent process.
        unsafe { libc::_exit(if is_equal { 0 } else { 1 }) };
    }
    assert_eq!(computed(), expected);
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut status = 0;
    // SAFETY: `status` is valid for a write, and `child` is the process that was forked above.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > deadline {
            // SAFETY: no wait for `child` has succeeded, so the number still belongs to this process.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the forked process hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0, "the forked process computed something else, or crashed");
}

/// Tests that the parent process and the new process can both compute after a fork.
#[test]
fn a_forked_process_computes() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "memory::tests::the_forked_process", "--test-threads=1", "--nocapture"]).env(FORKS, "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
