//! The guarantees of the crate, with processes that `mpirun` starts. The checkpoint is the same on any number of ranks.
//! A rank that dies or hangs ends the other ranks within the deadline. The restarted run ends with the same bytes.
//!
//! `cargo test -p wengert-distributed --features mpi` builds the example that runs here. Environment variables set
//! the extent of the tests:
//!
//! - `WENGERT_TEST_RANKS`: the numbers of ranks to test, `2,3,4` by default.
//! - `WENGERT_TEST_STEPS`: the number of compared steps, 100 by default.
//! - `WENGERT_TEST_KILLS`: the number of killed and stopped ranks, 6 by default.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use wengert_distributed::{Error, Group, Reduce};
use wengert_tensor::prelude::*;

/// The environment variable that tells the test [`child`] that it is one of several ranks.
const CHILD: &str = "WENGERT_TEST_CHILD";
/// The deadline of the ranks, in seconds.
const DEADLINE: f64 = 3.0;

fn ranks() -> Vec<usize> {
    let text = env::var("WENGERT_TEST_RANKS").unwrap_or_else(|_| "2,3,4".to_owned());
    text.split(',').map(|number| number.trim().parse().unwrap()).collect()
}

/// Returns the command that runs `program` on `ranks` ranks.
fn mpirun(ranks: usize, program: &Path) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", &ranks.to_string()]).arg(program);
    command
}

/// Returns the path of the example `train_mpi`, which is built in the same target folder as this test.
fn example() -> PathBuf {
    let program = env::current_exe().unwrap().parent().unwrap().with_file_name("examples").join("train_mpi");
    assert!(program.exists(), "{} is not built: `cargo build --examples --features mpi`", program.display());
    program
}

/// Returns the example's checkpoint after a run with `arguments` on `ranks` ranks. If `ranks` is 0, runs without `mpirun`.
fn checkpoint(ranks: usize, arguments: &[&str], path: &Path) -> Vec<u8> {
    let mut command = if ranks == 0 { Command::new(example()) } else { mpirun(ranks, &example()) };
    let output = command.args(arguments).arg("--out").arg(path).output().unwrap();
    assert!(output.status.success(), "{arguments:?} on {ranks} ranks: {}", String::from_utf8_lossy(&output.stderr));
    fs::read(path).unwrap()
}

#[test]
fn a_hundred_steps_write_the_same_file_on_any_number_of_ranks() {
    let steps = env::var("WENGERT_TEST_STEPS").unwrap_or_else(|_| "100".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let (whole, states, parameters) = (&[][..], &["--sharded"][..], &["--sharded-parameters"][..]);
    let all = [whole, states, parameters];
    // The transformer takes longest, so it is tested in fewer ways.
    for (model, [sgd, adamw]) in [
        ("mlp", [&all[..], &all[..]]),
        ("cnn", [&all, &all]),
        ("sync-cnn", [&[whole], &[states]]),
        ("transformer", [&[whole], &[states]]),
    ] {
        for (optimizer, ways) in [("sgd", sgd), ("adamw", adamw)] {
            let path = |name: String| folder.path().join(format!("{model}-{optimizer}-{name}"));
            let count = if model == "transformer" { "4" } else { "8" };
            let arguments = ["--model", model, "--optimizer", optimizer, "--batch", count, "--shards", count];
            let arguments = [&arguments[..], &["--steps", &steps]].concat();
            let expected = checkpoint(0, &arguments, &path("alone".to_owned()));
            for ranks in ranks() {
                for &way in ways {
                    let arguments = [&arguments[..], way].concat();
                    let found = checkpoint(ranks, &arguments, &path(format!("{ranks}{}", way.concat())));
                    assert!(found == expected, "{arguments:?} on {ranks} ranks: other bytes than alone");
                }
            }
        }
    }
}

#[test]
fn going_on_from_a_finished_training_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.safetensors");
    let before = checkpoint(0, &["--steps", "3"], &path);
    let output = Command::new(example()).args(["--steps", "3", "--out"]).arg(&path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("goes on at step 3"), "{text}");
    assert!(text.contains("no step was left to make, accuracy ") && !text.contains("NaN"), "{text}");
    assert!(fs::read(&path).unwrap() == before);
}

/// Returns the process ids of the ranks that `mpirun` has started, in ascending order.
fn ranks_of(mpirun: &Child) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The file `stat` of a process has the fields `pid (name) state parent …`.
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        if parent == Some(mpirun.id()) && stat.contains("(train_mpi)") {
            found.push(pid);
        }
    }
    found.sort_unstable();
    found
}

fn signal(name: &str, pid: u32) {
    Command::new("kill").args([name, &pid.to_string()]).stderr(Stdio::null()).status().unwrap();
}

/// Waits for the end of the process, but not longer than `limit`.
fn ended(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(20));
    }
    None
}

/// Reads lines until one begins with `beginning` or the output ends.
fn read_until(child: &mut Child, beginning: &str) -> BufReader<std::process::ChildStdout> {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while lines.read_line(&mut line).unwrap() > 0 && !line.starts_with(beginning) {
        line.clear();
    }
    lines
}

#[test]
fn killed_and_stopped_ranks_end_the_job_and_the_restart_ends_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let kills: u64 = env::var("WENGERT_TEST_KILLS").map_or(6, |text| text.parse().unwrap());
    // The shards sleep in each step, so that the run lasts longer than all kills.
    let steps = (60 * kills).to_string();
    let arguments = ["--model", "mlp", "--batch", "16", "--steps", &steps, "--save-every", "3", "--sharded"];
    let expected = checkpoint(0, &arguments, &folder.path().join("calm"));
    let path = folder.path().join("killed");
    let moments = &mut Generator::new(1);
    let ranks = ranks();
    for kill in 0..kills {
        let size = ranks[kill as usize % ranks.len()];
        let mut command = mpirun(size, &example());
        command
            .args(arguments)
            .args(["--delay", "5", "--out"])
            .arg(&path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.env("WENGERT_DEADLINE", DEADLINE.to_string());
        let mut job = command.spawn().unwrap();
        let lines = read_until(&mut job, "step ");
        thread::sleep(Duration::from_millis(moments.below(500)));
        let processes = ranks_of(&job);
        assert_eq!(processes.len(), size, "the job ended before it was killed; give it more steps");
        let victim = processes[moments.below(size as u64) as usize];
        let way = if kill % 2 == 0 { "-KILL" } else { "-STOP" };
        signal(way, victim);
        // The limit is the deadline plus the time that mpirun needs to end the other ranks.
        let status = ended(&mut job, Duration::from_secs_f64(DEADLINE + 20.0));
        let Some(status) = status else {
            signal("-KILL", victim);
            job.kill().unwrap();
            panic!("kill {kill}, {way} of one of {size}: the others still run");
        };
        drop(lines);
        let mut said = String::new();
        for line in BufReader::new(job.stderr.take().unwrap()).lines().map_while(Result::ok) {
            said += &line;
            said.push('\n');
        }
        // The exit code is 137 if MPI's launcher notices a process that dies, and 75 if another rank notices a lost rank. Only the other
        // ranks can notice a process that is stopped.
        let expected = if way == "-KILL" { [137, 75] } else { [75, 75] };
        assert!(expected.contains(&status.code().unwrap_or(-1)), "kill {kill}, {way}: {status}, {said}");
        if way == "-STOP" {
            assert!(said.contains("gave no sign of life"), "{said}");
        }
    }
    let found = checkpoint(ranks[0], &arguments, &path);
    assert!(found == expected, "the run that was killed {kills} times ends with other bytes");
}

#[test]
fn a_panic_ends_the_job() {
    let program = env::current_exe().unwrap();
    let mut command = mpirun(2, &program);
    command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env(CHILD, "panic");
    let began = Instant::now();
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(101), "{said}");
    assert!(said.contains("rank 1 panicked and ends the job"), "{said}");
    assert!(began.elapsed() < Duration::from_secs_f64(DEADLINE + 20.0));
}

#[test]
fn every_operation_by_mpi() {
    for ranks in ranks() {
        let mut command = mpirun(ranks, &env::current_exe().unwrap());
        command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env(CHILD, "operations");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{ranks} ranks: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// This is the program that each rank runs for the tests above, and not a test.
#[test]
fn child() {
    match env::var(CHILD).as_deref() {
        Ok("operations") => operations(&Group::world().unwrap()),
        Ok("panic") => {
            let group = Group::world().unwrap();
            group.barrier().unwrap();
            assert!(group.rank() != 1, "as is wanted");
            group.barrier().unwrap();
        }
        _ => {}
    }
}

fn operations(group: &Group) {
    let (rank, size) = (group.rank(), group.size());
    let count = 300_000;
    let own = |rank: usize| Tensor::<f64>::randn([count], &mut Generator::new(rank as u64));
    let all = group.all_gather(&own(rank)).unwrap();
    for (rank, tensor) in all.iter().enumerate() {
        assert_eq!(*tensor, own(rank));
    }
    let largest = group.all_reduce(&own(rank), Reduce::Max).unwrap();
    let expected = (1..size).fold(own(0), |largest, rank| largest.maximum(own(rank)));
    assert_eq!(largest, expected);
    let sum = group.all_reduce(&own(rank).cast::<f32>(), Reduce::Sum).unwrap();
    assert!(group.all_gather(&sum).unwrap().iter().all(|other| *other == sum));
    let fast = group.all_reduce_fast(&Tensor::<f64>::ones([count])).unwrap();
    assert_eq!(fast, Tensor::full([count], size as f64));
    let part = group.reduce_scatter(&Tensor::<f32>::ones([size, 3]), Reduce::Sum).unwrap();
    assert_eq!(part, Tensor::full([1, 3], size as f32));
    let mut tensor = Tensor::from([rank as i64, -1]);
    group.broadcast(&mut tensor, size - 1).unwrap();
    assert_eq!(tensor.to_vec(), [size as i64 - 1, -1]);
    assert_eq!(group.all_gather(&Tensor::from([rank == 1])).unwrap()[1].to_vec(), [true]);
    let error = group.all_reduce(&Tensor::<f32>::zeros([1 + rank / (size - 1)]), Reduce::Sum).unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    let error = if rank == 1 { group.barrier() } else { group.save(None, "") }.unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    assert!(group.any(rank == 1).unwrap());
    assert!(matches!(Group::world(), Err(Error::Start { .. })), "a group is made once");
    group.barrier().unwrap();
}
