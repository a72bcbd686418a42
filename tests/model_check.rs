//! The model checks of the protocols between threads: how a scenario runs, and the negative control.

use std::process::Command;

/// Runs `scenario` in every interleaving with at most `preemptions` preemptions.
pub(crate) fn check(preemptions: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(scenario);
}

/// Runs ignored tests of broken protocols, which must fail. `broken` has the name of each test and a part of its failure message.
///
/// Each test runs in a separate process, because the failed check may abort.
pub(crate) fn assert_finds(module: &str, broken: &[(&str, &str)]) {
    for (test, complaint) in broken {
        let name = format!("{module}::{test}");
        let program = std::env::current_exe().expect("the path of this program");
        let arguments = ["--exact", &name, "--ignored", "--nocapture"];
        let run = Command::new(program).args(arguments).output().expect("this program runs");
        let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert!(!run.status.success() && said.contains(complaint), "{test}: {said}");
    }
}
