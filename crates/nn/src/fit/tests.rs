use std::fs;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use wengert_autograd::{Tape, Var};
use wengert_tensor::ops::{Arithmetic as _, Comparison as _, Functions as _, Reductions as _, Views as _};
use wengert_tensor::{Generator, Tensor};

use super::files::{BEST, LAST, LOG};
use super::*;
use crate::file::Call;
use crate::file::faults::{Plan, with};
use crate::metrics::{Accuracy, Metric, RegressionErrors};
use crate::{
    DataLoader, Dataset, Dropout, History, Layer as _, Linear, Module, Result, Samples, Schedule, Sequential, Sgd,
    cross_entropy,
};

fn data() -> DataLoader<(Tensor<f64>, Tensor<i64>)> {
    let x = Tensor::randn([40, 2], &mut Generator::new(3));
    let classes = x.sum(1).gt(0.0).cast::<i64>();
    DataLoader::new(Samples::new(x, classes).unwrap(), 16).shuffle()
}

fn model() -> Sequential<f64> {
    let generator = &mut Generator::new(1);
    Sequential::new().add(Linear::new(2, 8, generator)).add(Dropout::new(0.2)).add(Linear::new(8, 2, generator))
}

/// Trains with the given settings, without output.
fn run(fit: Fit<'_, f64, Tensor<f64>>, model: &mut Sequential<f64>) -> Result<History> {
    fit.progress(Progress::Quiet).run(
        model,
        &mut Sgd::new(0.1).momentum(0.9),
        &data(),
        &mut Generator::new(5),
        |model, tape, x| model.forward(tape.constant(x)),
        |logits, classes| cross_entropy(&logits, classes),
    )
}

#[test]
fn a_resumed_training_learns_and_gives_the_same_bits() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let test = data();
    let fit = |epochs, folder: &tempfile::TempDir| {
        let fit =
            Fit::new(epochs).validation(&test).metric("top 2", Accuracy::top_k(2)).metric("accuracy", Accuracy::new());
        fit.schedule_steps(crate::schedule::LinearLR::new(0.1, 1.0, 0.1, 15)).clip_norm(1.0).folder(folder.path())
    };
    let (mut model, mut first, mut second) = (model(), self::model(), self::model());
    let history = run(fit(6, &whole), &mut model).unwrap();
    assert_eq!(history.epochs().len(), 6);
    let last = history.last().unwrap();
    assert!(last.validation.as_ref().unwrap().get("accuracy").unwrap() > 0.9, "{last}");
    assert!((last.lr - 0.01).abs() < 1e-12);
    run(fit(4, &parts), &mut first).unwrap();
    assert_eq!(run(fit(6, &parts).resume(), &mut second).unwrap(), history);
    for name in [LOG, BEST, LAST] {
        let bytes = |folder: &tempfile::TempDir| fs::read(folder.path().join(name)).unwrap();
        assert_eq!(bytes(&whole), bytes(&parts), "{name}");
    }
    // Resuming a completed training run restores the model and the history, and trains no epoch.
    assert_eq!(run(fit(6, &parts).resume(), &mut self::model()).unwrap(), history);
    let mut best = self::model();
    crate::load(&mut best, whole.path().join(BEST)).unwrap();
}

#[test]
fn losses_are_means_over_samples() {
    let (model, loader) = (model(), data());
    let all: Vec<_> = loader.epoch(0).map(Result::unwrap).collect();
    let forward = |model: &Sequential<f64>, x: &Tensor<f64>| model.forward(Tape::new().constant(x)).value();
    let sum: f64 = all.iter().map(|(x, y)| cross_entropy(&forward(&model, x), y).item() * y.numel() as f64).sum();
    let scores = evaluate(
        &model,
        &loader,
        &mut [],
        |model, tape, x| model.forward(tape.constant(x)),
        |logits, classes| cross_entropy(&logits, classes),
    );
    assert!((scores.unwrap().loss - sum / 40.0).abs() < 1e-14);
}

#[test]
fn it_stops_early_and_an_unknown_measure_is_an_error() {
    let stopping = EarlyStopping::new(2).min_delta(f64::INFINITY);
    let history = run(Fit::new(9).early_stopping("loss", stopping), &mut model()).unwrap();
    assert_eq!(history.epochs().len(), 2);
    let text = run(Fit::new(9).early_stopping("f1", EarlyStopping::new(2)), &mut model()).unwrap_err().to_string();
    assert_eq!(text, "early stopping: there is no measure 'f1'; add it by `metric`");
    assert_eq!(run(Fit::new(0), &mut model()).unwrap(), History::default());
}

#[test]
fn a_loss_that_is_not_finite_names_the_line_of_the_operation() {
    let run = |loss: for<'t> fn(Var<'t, f64>, &Tensor<i64>) -> Var<'t, f64>| {
        let fit = Fit::new(2).progress(Progress::Quiet);
        let (mut sgd, generator) = (Sgd::new(0.1), &mut Generator::new(0));
        fit.run(&mut model(), &mut sgd, &data(), generator, |model, tape, x| model.forward(tape.constant(x)), loss)
    };
    let line = line!() + 1;
    let error = run(|outputs, _| outputs.sub(outputs).log().mean(..)).unwrap_err().to_string();
    assert!(error.starts_with("epoch 1, batch 1: the loss is -inf\n'log' made the first -inf at [0, 0]"), "{error}");
    assert!(error.contains(&format!("fit/tests.rs:{line}:")), "{error}");
    // The loss √0 is finite, but the derivative of √ at 0 is infinite.
    let line = line!() + 1;
    let error = run(|outputs, _| outputs.sub(outputs).sqrt().mean(..)).unwrap_err().to_string();
    let start = "epoch 1, batch 1: the loss is 0, the gradient of '0.weight' is not finite\n'";
    assert!(error.starts_with(start) && error.contains(&format!("fit/tests.rs:{line}:")), "{error}");
}

#[test]
fn a_nan_in_the_data_is_reported_as_such() {
    let x = Tensor::from([[1.0, f64::NAN], [2.0, 3.0]]);
    let data = DataLoader::new(Samples::new(x, Tensor::from([0i64, 1])).unwrap(), 2);
    let (mut sgd, generator) = (Sgd::new(0.1), &mut Generator::new(0));
    let error = Fit::new(1).progress(Progress::Quiet).run(
        &mut model(),
        &mut sgd,
        &data,
        generator,
        |model, tape, x| model.forward(tape.constant(x)),
        |logits, classes| cross_entropy(&logits, classes),
    );
    let text = error.unwrap_err().to_string();
    assert!(text.contains("the constant [2, 2] given at") && text.contains("holds NaN at [0, 1]"), "{text}");
    assert!(
        text.ends_with("\n  hint: the data has NaN: replace it (`nan_to_num`) or leave out these samples"),
        "{text}"
    );
}

/// The settings of a short training run that writes all its files into `folder`.
fn in_folder(folder: &Path) -> Fit<'static, f64, Tensor<f64>> {
    Fit::new(3).metric("accuracy", Accuracy::new()).folder(folder)
}

/// Returns the contents of the files of a training run; `None` for a file that does not exist.
fn contents(folder: &Path) -> [Option<Vec<u8>>; 3] {
    [LOG, BEST, LAST].map(|name| fs::read(folder.join(name)).ok())
}

#[test]
fn a_failure_or_a_kill_between_any_two_system_calls_loses_at_most_an_epoch() {
    let calm = tempfile::tempdir().unwrap();
    let (history, calls) = with(Plan::Healthy, || run(in_folder(calm.path()), &mut model()).unwrap());
    let expected = contents(calm.path());
    assert!(calls.len() >= 3 * 2 * 5, "{calls:?}");
    for (at, call) in calls.into_iter().enumerate() {
        for plan in [Plan::Kill(at), Plan::Fail(at, ErrorKind::StorageFull)] {
            let folder = tempfile::tempdir().unwrap();
            let (result, _) = with(plan, || run(in_folder(folder.path()), &mut model()));
            let flush_of_folder = call == Call::SyncFolder;
            assert!(result.is_err() || flush_of_folder, "{plan:?}");
            // Each file is missing or complete.
            if folder.path().join(BEST).exists() {
                crate::load(&mut model(), folder.path().join(BEST)).unwrap();
            }
            assert_eq!(run(in_folder(folder.path()).resume(), &mut model()).unwrap(), history, "{plan:?}");
            assert!(contents(folder.path()) == expected, "{plan:?}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "{plan:?}: a temporary file was left");
        }
    }
}

#[test]
fn a_log_that_is_shorter_than_the_checkpoint_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    run(in_folder(folder.path()), &mut model()).unwrap();
    let log = folder.path().join(LOG);
    let whole = fs::read_to_string(&log).unwrap();
    for (lines, found) in [(1, "line 2: the log has 1 epochs, "), (0, "line 1: the log has 0 epochs, ")] {
        let short: String = whole.split_inclusive('\n').take(lines).collect();
        fs::write(&log, &short).unwrap();
        let before = contents(folder.path());
        let text = run(in_folder(folder.path()).resume(), &mut model()).unwrap_err().to_string();
        assert!(text.contains(found) && text.contains("'last.safetensors' was written after epoch 3"), "{text}");
        assert!(contents(folder.path()) == before);
    }
    fs::remove_file(&log).unwrap();
    let text = run(in_folder(folder.path()).resume(), &mut model()).unwrap_err().to_string();
    assert!(text.contains("log.jsonl': No such file"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_missing_checkpoint_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    run(in_folder(folder.path()), &mut model()).unwrap();
    fs::remove_file(folder.path().join(LAST)).unwrap();
    std::os::unix::fs::symlink("unmounted/last.safetensors", folder.path().join(LAST)).unwrap();
    let before = contents(folder.path());
    let text = run(in_folder(folder.path()).resume(), &mut model()).unwrap_err().to_string();
    assert!(text.starts_with("cannot read '") && text.contains("last.safetensors': No such file"), "{text}");
    assert!(contents(folder.path()) == before);
}

/// A countdown that serves as a metric, a schedule or a data set, and that panics when it reaches 0.
struct Panicking(AtomicUsize);

impl Panicking {
    fn count_down(&self) {
        assert!(self.0.fetch_sub(1, Ordering::Relaxed) != 1, "planned");
    }
}

impl Metric<f64, Tensor<i64>> for Panicking {
    fn reset(&mut self) {
        self.count_down();
    }

    fn update(&mut self, _: &Tensor<f64>, _: &Tensor<i64>) -> Result<()> {
        self.count_down();
        Ok(())
    }

    fn value(&self) -> f64 {
        self.count_down();
        0.0
    }
}

impl Schedule for Panicking {
    fn lr(&self, _: u64) -> f64 {
        self.count_down();
        0.1
    }
}

impl Dataset for Panicking {
    type Batch = (Tensor<f64>, Tensor<i64>);

    fn len(&self) -> usize {
        40
    }

    fn batch(&self, indices: &[usize]) -> Result<Self::Batch> {
        self.count_down();
        Ok((Tensor::ones([indices.len(), 2]), Tensor::zeros([indices.len()])))
    }

    fn subset(&self, _: &[usize]) -> Result<Self> {
        unreachable!("the test makes no subsets")
    }
}

/// Runs `training`, which panics, and checks that a second training run in the same process then gives the history `expected`.
fn panics_and_recovers(expected: &History, training: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| training(folder.path()))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"planned"));
    // The files of the completed epochs are complete, so the training can be resumed.
    assert_eq!(&run(in_folder(folder.path()).resume(), &mut model()).unwrap(), expected);
}

#[test]
fn after_a_panic_in_a_closure_of_the_user_everything_works() {
    let calm = tempfile::tempdir().unwrap();
    let history = run(in_folder(calm.path()), &mut model()).unwrap();
    let quiet = |folder: &Path| in_folder(folder).progress(Progress::Quiet);
    for after in [1, 2, 5] {
        let counter = || Panicking(AtomicUsize::new(after));
        for in_loss in [false, true] {
            let counter = counter();
            panics_and_recovers(&history, |folder| {
                let _ = quiet(folder).run(
                    &mut model(),
                    &mut Sgd::new(0.1).momentum(0.9),
                    &data(),
                    &mut Generator::new(5),
                    |model, tape, x| {
                        if !in_loss {
                            counter.count_down();
                        }
                        model.forward(tape.constant(x))
                    },
                    |logits, classes| {
                        if in_loss {
                            counter.count_down();
                        }
                        cross_entropy(&logits, classes)
                    },
                );
            });
        }
        // The log has the names of the metrics, and a resumed training run must have the same metrics. So the runs below write
        // no files.
        let fit = || Fit::new(9);
        panics_and_recovers(&history, |_| drop(run(fit().metric("planned", counter()), &mut model())));
        panics_and_recovers(&history, |_| drop(run(fit().schedule_steps(counter()), &mut model())));
        for prefetch in [0, 1, 3] {
            let loader = DataLoader::new(counter(), 4).prefetch(prefetch);
            panics_and_recovers(&history, |_| loader.epoch(0).for_each(|batch| drop(batch.unwrap())));
        }
    }
}

/// Trains a linear layer without momentum, on batches of `size` samples in order, and returns its parameters.
fn weights_after(fit: Fit<'_, f64, Tensor<f64>>, size: usize) -> Vec<f64> {
    let x = Tensor::randn([40, 2], &mut Generator::new(3));
    let classes = x.sum(1).gt(0.0).cast::<i64>();
    let data = DataLoader::new(Samples::new(x, classes).unwrap(), size);
    let mut model = Linear::new(2, 2, &mut Generator::new(1));
    fit.progress(Progress::Quiet)
        .run(
            &mut model,
            &mut Sgd::new(0.1),
            &data,
            &mut Generator::new(5),
            |model, tape, x| model.forward(tape.constant(x)),
            |logits, classes| cross_entropy(&logits, classes),
        )
        .unwrap();
    model.to_vector().to_vec()
}

#[test]
fn accumulated_batches_make_the_step_of_one_large_batch() {
    // 40 samples make six batches of 6 and one of 4. Steps of 3 batches have 18, 18 and 4 samples.
    let (parts, whole) = (weights_after(Fit::new(3).accumulate(3), 6), weights_after(Fit::new(3), 18));
    assert!(parts.iter().zip(&whole).all(|(x, y)| (x - y).abs() < 1e-14), "{parts:?} {whole:?}");
    assert_ne!(parts, weights_after(Fit::new(3), 6));
    assert_eq!(weights_after(Fit::new(3).accumulate(1), 6), weights_after(Fit::new(3), 6));
    // The schedule counts steps: the third step of each epoch has a rate of 0, so the last four samples change nothing.
    let schedule = |step: u64| if step % 3 == 2 { 0.0 } else { 0.1 };
    let scheduled = weights_after(Fit::new(1).accumulate(3).schedule_steps(schedule), 6);
    let expected = weights_after(Fit::new(1).schedule_steps(schedule), 18);
    assert!(scheduled.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-14), "{scheduled:?} {expected:?}");
}

#[test]
fn averages_and_plateaus_resume_with_the_same_bits() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let test = data();
    let new = crate::WeightAverage::<f64>::swa;
    let (mut expected, mut first, mut second) = (new(), new(), new());
    fn fit<'a>(
        epochs: u64,
        folder: &tempfile::TempDir,
        average: &'a mut crate::WeightAverage<f64>,
        test: &'a DataLoader<(Tensor<f64>, Tensor<i64>)>,
    ) -> Fit<'a, f64, Tensor<f64>> {
        // No loss changes by 100, so after the first epoch no measure counts as an improvement. Therefore the rate is halved after every
        // second epoch.
        let plateau = crate::schedule::ReduceLROnPlateau::new(0.1).factor(0.5).patience(1).absolute_threshold(100.0);
        let fit = Fit::new(epochs).validation(test).plateau("loss", plateau).folder(folder.path());
        fit.average_steps(average)
    }
    let mut model = model();
    let history = run(fit(6, &whole, &mut expected, &test), &mut model).unwrap();
    let rates: Vec<f64> = history.epochs().iter().map(|epoch| epoch.lr).collect();
    // The first measure is compared with infinity, so it counts as an improvement.
    assert_eq!(rates, [0.1, 0.1, 0.1, 0.05, 0.05, 0.025]);
    run(fit(3, &parts, &mut first, &test), &mut self::model()).unwrap();
    let mut resumed = self::model();
    assert_eq!(run(fit(6, &parts, &mut second, &test).resume(), &mut resumed).unwrap(), history);
    for name in [LOG, BEST, LAST] {
        let bytes = |folder: &tempfile::TempDir| fs::read(folder.path().join(name)).unwrap();
        assert_eq!(bytes(&whole), bytes(&parts), "{name}");
    }
    assert_eq!((expected.updates(), second.updates()), (18, 18));
    // `model` has the weights of the last step, and not the average. The file of the best model has the average at the best epoch.
    let last = model.to_vector();
    assert_eq!(last, resumed.to_vector());
    expected.apply_to(&mut model);
    assert_ne!(last, model.to_vector());
    let losses: Vec<f64> = history.epochs().iter().map(|epoch| epoch.validation.as_ref().unwrap().loss).collect();
    assert_eq!(losses.last().copied(), losses.iter().copied().reduce(f64::min), "the last epoch is the best one");
    let mut best = self::model();
    crate::load(&mut best, whole.path().join(BEST)).unwrap();
    assert_eq!(best.to_vector(), model.to_vector());
    let error = run(Fit::new(1).plateau("f1", crate::schedule::ReduceLROnPlateau::new(0.1)), &mut self::model());
    assert_eq!(error.unwrap_err().to_string(), "plateau: there is no measure 'f1'; add it by `metric`");
}

#[test]
fn averages_over_epochs_are_means_of_their_last_weights() {
    let (mut average, mut seen) = (crate::WeightAverage::swa(), Vec::new());
    let fit = Fit::new(3).average_epochs(&mut average).on_epoch(|_, model| {
        seen.push(model.to_vector());
        Ok(std::ops::ControlFlow::Continue(()))
    });
    let mut model = model();
    run(fit, &mut model).unwrap();
    let mean = (&seen[0] + &seen[1] + &seen[2]) / 3.0;
    average.apply_to(&mut model);
    assert!((model.to_vector() - mean).abs().amax(..).item() < 1e-14);
}

#[test]
fn a_callback_ends_the_training() {
    let calls = AtomicUsize::new(0);
    let fit = Fit::new(9).on_epoch(|history, _| {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(if history.epochs().len() == 2 {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        })
    });
    assert_eq!(run(fit, &mut model()).unwrap().epochs().len(), 2);
    assert_eq!(calls.into_inner(), 2);
    let failing = Fit::new(9).on_epoch(|_, _| Err(crate::Error::Dataset("no".to_owned())));
    assert_eq!(run(failing, &mut model()).unwrap_err().to_string(), "no");
}

/// The environment variable that makes the test [`child`] train.
const CHILD: &str = "WENGERT_TEST_PROGRESS";

#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    for last in [2, 3] {
        let fit = Fit::new(3).on_epoch(move |history, _| {
            let is_last = history.epochs().len() == last;
            Ok(if is_last { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) })
        });
        let history = fit.progress(Progress::Bar).run(
            &mut model(),
            &mut Sgd::new(0.1),
            &data(),
            &mut Generator::new(5),
            |model, tape, x| model.forward(tape.constant(x)),
            |logits, classes| cross_entropy(&logits, classes),
        );
        assert_eq!(history.unwrap().epochs().len(), last);
    }
}

/// A child process trains, because the output belongs to the process. Its standard error is no terminal.
#[test]
fn the_last_line_has_the_total_time_also_after_a_callback_ends_the_training() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", "fit::tests::child", "--nocapture"]).env(CHILD, "1").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // The first line begins with text of the test runner.
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("epoch ")).collect();
    assert_eq!(lines.len(), 6, "{text}");
    let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
    for line in [0, 1, 3, 4] {
        assert!(lines[line].contains("  loss ") && lines[line].ends_with(" s left"), "{text}");
    }
    assert_eq!(words(2)[..6], ["stopped", "by", "a", "callback", "after", "epoch"], "{text}");
    assert_eq!((words(2)[6], words(2)[8]), ("2:", "s"), "{text}");
    // After the last epoch, the callback has nothing to end.
    assert!(lines[5].contains("epoch 3/3  loss ") && lines[5].ends_with(" s") && !lines[5].contains("left"), "{text}");
}

#[test]
fn a_metric_with_the_name_of_the_loss_or_of_another_metric_is_refused() {
    for (names, problem) in [
        (&["loss"][..], "a metric cannot be named 'loss', which is the name of the loss"),
        (&["top 1", "top 2", "top 1"], "two metrics have the name 'top 1'"),
    ] {
        let fit = names.iter().fold(Fit::new(1), |fit, name| fit.metric(name, Accuracy::new()));
        assert_eq!(run(fit, &mut model()).unwrap_err().to_string(), problem);
        let mut metrics: Vec<Accuracy> = names.iter().map(|_| Accuracy::new()).collect();
        let mut named: Vec<(&str, &mut dyn Metric<f64>)> =
            names.iter().zip(&mut metrics).map(|(name, metric)| (*name, metric as &mut dyn Metric<f64>)).collect();
        let scores = evaluate(
            &model(),
            &data(),
            &mut named,
            |model, tape, x| model.forward(tape.constant(x)),
            |logits, classes| cross_entropy(&logits, classes),
        );
        assert_eq!(scores.unwrap_err().to_string(), problem);
    }
}

#[test]
fn a_norm_that_is_no_norm_and_a_resumed_training_without_a_folder_are_errors() {
    for norm in [-1.0, f64::NAN] {
        let mut model = model();
        let text = run(Fit::new(1).clip_norm(norm), &mut model).unwrap_err().to_string();
        assert_eq!(text, format!("Invalid max_norm value: {norm}; expected a number, not negative"));
        assert_eq!(model.to_vector(), self::model().to_vector());
    }
    assert!(run(Fit::new(1).clip_norm(f64::INFINITY), &mut model()).is_ok());
    let text = run(Fit::new(1).resume(), &mut model()).unwrap_err().to_string();
    assert_eq!(text, "resume: there is no folder to resume from; set it by `folder`");
}

/// Two inputs, a number and an index, and two targets, a class and a number.
type Pairs = ((Tensor<f64>, Tensor<i64>), (Tensor<i64>, Tensor<f64>));

/// Returns a loader of 40 samples: a number and an index from 0 to 2. The targets come from s = number + index - 1: class 1 if s is positive,
/// otherwise 0, and s itself.
fn pairs(generator: &mut Generator) -> DataLoader<Pairs> {
    let (numbers, indices) = (Tensor::<f64>::randn([40], generator), Tensor::randint(0, 3, [40], generator));
    let sums = &numbers + indices.cast::<f64>() - 1.0;
    let data = Samples::new((numbers, indices), (sums.gt(0.0).cast::<i64>(), sums)).unwrap();
    DataLoader::new(data, 16)
}

/// A model with two inputs, a number and an index, and two outputs.
#[derive(Module)]
struct TwoByTwo {
    table: crate::Embedding<f64>,
    class: Linear<f64>,
    sum: Linear<f64>,
}

impl TwoByTwo {
    fn new(generator: &mut Generator) -> Self {
        let table = crate::Embedding::new(3, 4, generator);
        TwoByTwo { table, class: Linear::new(5, 2, generator), sum: Linear::new(5, 1, generator) }
    }

    fn forward<'t>(&self, tape: &'t Tape<f64>, numbers: &Tensor<f64>, indices: &Tensor<i64>) -> [Var<'t, f64>; 2] {
        let number = tape.constant(numbers).unsqueeze(1);
        let features = wengert_tensor::ops::cat(&[number, self.table.forward(tape, indices)], 1);
        [self.class.forward(features), self.sum.forward(features).squeeze(1)]
    }
}

fn two_losses<'t>([class, sum]: [Var<'t, f64>; 2], (classes, sums): &(Tensor<i64>, Tensor<f64>)) -> Var<'t, f64> {
    cross_entropy(&class, classes) + sum.sub(sums).square().mean(..)
}

#[test]
fn a_model_with_two_inputs_and_two_outputs_learns_and_resumes() {
    let generator = &mut Generator::new(2);
    let (train, folder) = (pairs(generator).shuffle(), tempfile::tempdir().unwrap());
    let (train, test) = (&train, &pairs(generator));
    let start = TwoByTwo::new(generator);
    let run = |epochs, model: &mut TwoByTwo| {
        let fit = Fit::new(epochs).validation(test).progress(Progress::Quiet).folder(folder.path()).resume();
        let fit = fit.metric("accuracy", Accuracy::new().head::<0>());
        let fit = fit.metric("error", RegressionErrors::new().by(RegressionErrors::rmse).head::<1>());
        let (mut sgd, generator) = (Sgd::new(0.2), &mut Generator::new(7));
        fit.run_heads(model, &mut sgd, train, generator, |model, tape, (x, i)| model.forward(tape, x, i), two_losses)
    };
    let copy =
        |model: &TwoByTwo| TwoByTwo { table: model.table.clone(), class: model.class.clone(), sum: model.sum.clone() };
    run(10, &mut copy(&start)).unwrap();
    let (mut model, mut whole) = (copy(&start), copy(&start));
    let history = run(40, &mut model).unwrap();
    let scores = history.last().unwrap().validation.as_ref().unwrap();
    assert!(scores.get("accuracy").unwrap() > 0.9 && scores.get("error").unwrap() < 0.1, "{scores:?}");
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(run(40, &mut whole).unwrap(), history);

    let evaluated = evaluate_heads(
        &model,
        test,
        &mut [("accuracy", &mut Accuracy::new().head::<0>())],
        |model, tape, (x, i)| model.forward(tape, x, i),
        two_losses,
    );
    let evaluated = evaluated.unwrap();
    assert_eq!((evaluated.loss, evaluated.get("accuracy")), (scores.loss, scores.get("accuracy")));
}

#[test]
fn predictions_of_batches_are_the_predictions_of_all_inputs() {
    let generator = &mut Generator::new(2);
    let (model, test) = (TwoByTwo::new(generator), pairs(generator));
    let (inputs, _) = test.epoch(0).next().unwrap().unwrap();
    let tape = Tape::new();
    let expected = model.forward(&tape, &inputs.0, &inputs.1).map(|output| output.value());
    for size in [1, 5, 16, 100] {
        let loader = DataLoader::new(inputs.clone(), size);
        let outputs = predict_heads(&model, &loader, |model, tape, (x, i)| model.forward(tape, x, i)).unwrap();
        for (output, expected) in outputs.iter().zip(&expected) {
            assert!((output - expected).abs().amax(..).item() < 1e-14, "{size}");
        }
        let sums = predict(&model, &loader, |model, tape, (x, i)| model.forward(tape, x, i)[1]).unwrap();
        assert_eq!(sums, outputs[1]);
    }
    let none = DataLoader::new(inputs, 100).drop_last();
    let error = predict(&model, &none, |model, tape, (x, i)| model.forward(tape, x, i)[1]).unwrap_err();
    assert_eq!(error.to_string(), "predict: the loader has no batches, so the outputs have no shape");
    let scalar = predict(&model, &test, |model, tape, ((x, i), _)| model.forward(tape, x, i)[1].sum(..));
    assert!(scalar.unwrap_err().to_string().contains("zero-dimensional"));
}

#[test]
fn a_head_that_the_model_lacks_is_an_error() {
    let generator = &mut Generator::new(2);
    let (model, test) = (TwoByTwo::new(generator), pairs(generator));
    let error = evaluate_heads(
        &model,
        &test,
        &mut [("error", &mut RegressionErrors::new().by(RegressionErrors::rmse).head::<1>())],
        |model, tape, (x, i)| [model.forward(tape, x, i)[0]],
        |[class], (classes, _)| cross_entropy(&class, classes),
    );
    assert_eq!(error.unwrap_err().to_string(), "there is no head 1: the number of outputs is 1");
}

#[test]
fn a_model_with_one_output_may_have_weights_beside_its_targets() {
    let generator = &mut Generator::new(2);
    let x = Tensor::<f64>::randn([40, 2], generator);
    let labels = x.sum(1).gt(0.0).cast::<f64>();
    let weights = Tensor::<f64>::rand([40], generator);
    let loader = DataLoader::new(Samples::new(x, (labels, weights)).unwrap(), 8).shuffle();
    let fit = Fit::new(30).progress(Progress::Quiet);
    let fit = fit.metric("accuracy", crate::metrics::BinaryScores::new().by(|scores| scores.accuracy(0.0)).head::<0>());
    let mut model = Linear::new(2, 1, generator);
    let history = fit.run(
        &mut model,
        &mut Sgd::new(2.0),
        &loader,
        generator,
        |model, tape, x| model.forward(tape.constant(x)).squeeze(1),
        |y, (labels, weights)| crate::BceWithLogitsLoss::new().weight(weights).of(y, labels),
    );
    let history = history.unwrap();
    assert!(history.last().unwrap().train.get("accuracy").unwrap() > 0.9, "{history:?}");
    let mut scores = crate::metrics::BinaryScores::new();
    let error = Metric::update(&mut scores, &Tensor::from([0.5]), &Tensor::from([0.25])).unwrap_err();
    assert_eq!(error.to_string(), "expected labels of 0 or 1, but got 0.25");
    assert!(scores.accuracy(0.0).is_nan());
}

#[test]
fn three_inputs_without_targets_train() {
    let generator = &mut Generator::new(2);
    let [anchor, other, negative] = [(); 3].map(|()| Tensor::<f64>::randn([200, 4], generator));
    // The first two numbers of a positive example are the anchor's numbers.
    let positive = wengert_tensor::ops::cat(&[anchor.narrow(1, 0, 2), other.narrow(1, 0, 2)], 1);
    let loader = DataLoader::new((anchor, positive, negative), 10).shuffle().map(|inputs, _| Ok((inputs, ())));
    let history = Fit::new(20).progress(Progress::Quiet).run_heads(
        &mut Linear::new(4, 3, generator),
        &mut Sgd::new(0.1),
        &loader,
        generator,
        |model, tape, (anchor, positive, negative)| {
            [anchor, positive, negative].map(|x| model.forward(tape.constant(x)))
        },
        |[anchor, positive, negative], ()| crate::triplet_margin_loss(&anchor, positive, negative),
    );
    let losses: Vec<f64> = history.unwrap().epochs().iter().map(|epoch| epoch.train.loss).collect();
    assert!(losses[19] < 0.5 * losses[0], "{losses:?}");
}
