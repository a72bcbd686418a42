//! A step that records its losses and evaluates them itself gives the same bits as a step that receives computed gradients. This holds on
//! any number of ranks. Up to rounding, batch normalization over all ranks gives the same result as one rank with the whole batch.

use std::thread;

use wengert_autograd::prelude::*;
use wengert_distributed::{DataParallel, Error, Group, SyncBatchNorm};
use wengert_nn::{
    Adafactor, Adam, BatchNorm1d, BatchNorm2d, Conv2d, Dropout, Embedding, Flatten, Generator, Layer, Linear,
    MaxPool2d, Module, Muon, Optimizer, ReLU, Sequential, Sgd, cross_entropy,
};
use wengert_tensor::compat;

/// Returns the result of `train`, which must be the same on each of `N` ranks.
fn on_ranks<const N: usize, R: PartialEq + Send>(train: impl Fn(&Group) -> R + Sync) -> R {
    let results: Vec<R> = thread::scope(|scope| {
        let threads = Group::in_process::<N>().map(|group| scope.spawn(|| train(&{ group })));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(results.iter().all(|result| *result == results[0]));
    results.into_iter().next().unwrap()
}

/// Returns the bytes of all parameters and buffers.
fn bytes<T: Float>(model: &impl Module<T>) -> Vec<Vec<u8>> {
    let mut bytes: Vec<Vec<u8>> = model.named_buffers().into_iter().map(|(_, buffer)| buffer.to_bytes()).collect();
    bytes.push(model.to_vector().iter().flat_map(|value| value.to_f64().to_le_bytes()).collect());
    bytes
}

#[derive(Clone, Copy, Debug)]
struct Way {
    recorded: bool,
    sharded: bool,
    every: usize,
    bucket: usize,
}

/// Takes five steps and returns the bytes of the model. Some batches divide evenly among the shards, others do not.
fn trained(group: &Group, way: Way) -> Vec<Vec<u8>> {
    let generator = &mut Generator::new(3);
    let mut model: Sequential = Sequential::new()
        .add(Linear::new(20, 70, generator))
        .add(BatchNorm1d::new(70))
        .add(ReLU)
        .add(Dropout::new(0.25))
        .add(Linear::new(70, 50, generator))
        .add(Linear::new(50, 3, generator));
    let mut parallel =
        DataParallel::new(group, &mut model, Adam::new(0.01)).unwrap().clip_norm(0.5).send_every(way.every);
    parallel = parallel.bucket_bytes(way.bucket);
    if way.sharded {
        parallel = parallel.sharded(&model);
    }
    for rows in [24, 16, 13, 24, 3] {
        let (x, y) = (Tensor::randn([rows, 20], generator), Tensor::randint(0, 3, [rows], generator));
        let batch = |shard: &wengert_distributed::Shard| {
            let (x, y) = (shard.of(&x), shard.of(&y));
            // `BatchNorm1d` refuses a batch of one row, so each row of a shard is used twice.
            (cat(&[x.clone(), x], 0), cat(&[y.clone(), y], 0))
        };
        let step = if way.recorded {
            parallel.step_recorded(&mut model, rows, generator, |model, tape, shard| {
                let (x, y) = batch(shard);
                Ok(cross_entropy(&model.forward(tape.constant(&x)), &y))
            })
        } else {
            parallel.step(&mut model, rows, generator, |model, shard| {
                let (x, y) = batch(shard);
                Ok(Tape::training(&mut shard.generator)
                    .value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &y)))
            })
        };
        assert!(step.unwrap().loss.is_finite());
    }
    bytes(&model)
}

#[test]
fn a_recorded_step_has_the_bits_of_a_computed_one() {
    let whole = Way { recorded: false, sharded: false, every: usize::MAX, bucket: 4 << 20 };
    let expected = trained(&Group::alone(), whole);
    for (sharded, every, bucket) in [(false, 8, 4 << 20), (false, 8, 512), (false, 1, 4096), (true, 8, 512)] {
        let way = Way { recorded: true, sharded, every, bucket };
        assert!(trained(&Group::alone(), way) == expected, "{way:?} alone");
        assert!(on_ranks::<2, _>(|group| trained(group, way)) == expected, "{way:?} on 2 ranks");
        assert!(on_ranks::<3, _>(|group| trained(group, way)) == expected, "{way:?} on 3 ranks");
        assert!(on_ranks::<4, _>(|group| trained(group, way)) == expected, "{way:?} on 4 ranks");
    }
}

/// Takes five steps of a model that looks up rows of a table. The batches divide evenly among the shards. Returns the checkpoint (on rank
/// 0) and the bytes of the model.
fn with_parameters(group: &Group, sharded: bool) -> (Vec<u8>, Vec<Vec<u8>>) {
    let generator = &mut Generator::new(8);
    let mut model = (
        Embedding::<f32>::new(90, 40, generator),
        Sequential::new().add(Linear::new(40, 70, generator)).add(ReLU).add(BatchNorm1d::new(70)),
        Linear::new(70, 3, generator),
    );
    model.1.freeze("0.bias");
    let mut parallel = DataParallel::new(group, &mut model, Adam::new(0.01)).unwrap().clip_norm(0.5);
    if sharded {
        parallel = parallel.sharded_parameters(&mut model);
        assert!(model.2.weight.value.iter().all(f32::is_nan));
        assert!(matches!(parallel.checkpoint("optimizer", &model), Err(Error::ShardedParameters(_))));
        let error = parallel.step_recorded(&mut model, 13, generator, |_, _, _| unreachable!());
        assert!(matches!(error, Err(Error::ShardedParameters(_))));
        // The bound on this rank's bytes: its share of the parameters, a block of 1,024 elements of 4 bytes, and the frozen parameters.
        let (own, whole) = (parallel.parameter_bytes(&model), 4 * model.num_parameters());
        assert!(own <= whole / group.size() + 4096 + 4 * 70, "{own} of {whole} bytes");
    }
    let generator = &mut Generator::new(9);
    for rows in [24, 16, 32, 16, 16] {
        let (x, y) = (Tensor::randint(0, 90, [rows], generator), Tensor::randint(0, 3, [rows], generator));
        let step = parallel.step_recorded(&mut model, rows, generator, |model, tape, shard| {
            let looked_up = model.0.forward(tape, &shard.of(&x));
            Ok(cross_entropy(&model.2.forward(model.1.forward(looked_up)), &shard.of(&y)))
        });
        assert!(step.unwrap().loss.is_finite());
    }
    parallel.gather(&mut model).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    group.save(parallel.checkpoint("optimizer", &model).unwrap(), &path).unwrap();
    let file = if group.is_first() { std::fs::read(&path).unwrap() } else { Vec::new() };
    (file, bytes(&model))
}

#[test]
fn sharded_parameters_change_no_bit() {
    let (file, expected) = with_parameters(&Group::alone(), false);
    fn check<const N: usize>(file: &[u8], expected: &[Vec<u8>]) {
        let found = on_ranks::<N, _>(|group| {
            let (own, found) = with_parameters(group, true);
            assert!(!group.is_first() || own == file, "another file on {N} ranks");
            found
        });
        assert!(found == expected, "other parameters on {N} ranks");
    }
    check::<1>(&file, &expected);
    check::<2>(&file, &expected);
    check::<3>(&file, &expected);
    check::<4>(&file, &expected);
}

/// Returns a CNN with the normalization layers that `norm` makes.
fn cnn<N: Layer<f64> + 'static>(norm: impl Fn(usize) -> N) -> Sequential<f64> {
    let generator = &mut Generator::new(5);
    Sequential::new()
        .add(Conv2d::builder(1, 4, 3).padding(1).build(generator))
        .add(norm(4))
        .add(ReLU)
        .add(Conv2d::builder(4, 6, 3).padding(1).build(generator))
        .add(norm(6))
        .add(ReLU)
        .add(MaxPool2d::new(2))
        .add(Flatten::new(1, -1))
        .add(Linear::new(6 * 9, 3, generator))
}

fn batches() -> Vec<(Tensor<f64>, Tensor<i64>)> {
    let generator = &mut Generator::new(6);
    let batch = |rows: usize| {
        // The means of the inputs differ between the shards.
        let shift = Tensor::from_fn([rows, 1, 1, 1], |at| at[0] as f64);
        (Tensor::randn([rows, 1, 6, 6], generator) + shift, Tensor::randint(0, 3, [rows], generator))
    };
    [16, 13, 3].map(batch).into()
}

/// Trains with batch normalization over all ranks. Returns the bytes of each buffer, followed by the bytes of all parameters. Also returns
/// the parameters as a vector.
fn synchronized(group: &Group, sharded: bool) -> (Vec<Vec<u8>>, Tensor<f64>) {
    let mut model = cnn(SyncBatchNorm::new);
    let mut parallel = DataParallel::new(group, &mut model, Sgd::new(0.1).momentum(0.9)).unwrap();
    if sharded {
        parallel = parallel.sharded(&model);
    }
    for (x, y) in batches() {
        let generator = &mut Generator::new(0);
        let step = parallel.step_recorded(&mut model, y.numel(), generator, |model, tape, shard| {
            Ok(cross_entropy(&model.forward(tape.constant(shard.of(&x))), &shard.of(&y)))
        });
        step.unwrap();
    }
    (bytes(&model), model.to_vector())
}

#[test]
fn batch_norm_over_all_ranks_equals_batch_norm_of_the_whole_batch() {
    let alone = Group::alone();
    let mut model = cnn(BatchNorm2d::new);
    let mut parallel = DataParallel::new(&alone, &mut model, Sgd::new(0.1).momentum(0.9)).unwrap().shards(1);
    for (x, y) in batches() {
        let step = parallel.step(&mut model, y.numel(), &mut Generator::new(0), |model, shard| {
            Ok(Tape::training(&mut shard.generator)
                .value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &y)))
        });
        step.unwrap();
    }
    let (expected, found) = (model.to_vector(), synchronized(&alone, false));
    // The bound covers the rounding of f64 in three steps.
    assert!(found.1.sub(&expected).abs().amax(..).item() < 1e-10, "{:?}", found.1.sub(&expected).abs().amax(..));
    for ((path, one), two) in model.named_buffers().into_iter().zip(&found.0) {
        let numbers =
            |bytes: &[u8]| bytes.chunks(8).map(|chunk| f64::from_le_bytes(chunk.try_into().unwrap())).collect();
        let (one, two): (Vec<f64>, Vec<f64>) = (numbers(&one.to_bytes()), numbers(two));
        assert!(one.iter().zip(&two).all(|(one, two)| (one - two).abs() < 1e-10), "{path}: {one:?}, {two:?}");
    }
    for sharded in [false, true] {
        assert!(on_ranks::<2, _>(|group| synchronized(group, sharded).0) == found.0);
        assert!(on_ranks::<3, _>(|group| synchronized(group, sharded).0) == found.0);
        assert!(on_ranks::<4, _>(|group| synchronized(group, sharded).0) == found.0);
    }
    // If each shard uses only its own statistics, the result is different.
    let mut each = cnn(BatchNorm2d::new);
    let mut parallel = DataParallel::new(&alone, &mut each, Sgd::new(0.1).momentum(0.9)).unwrap();
    for (x, y) in batches() {
        let step = parallel.step_recorded(&mut each, y.numel(), &mut Generator::new(0), |model, tape, shard| {
            Ok(cross_entropy(&model.forward(tape.constant(shard.of(&x))), &shard.of(&y)))
        });
        step.unwrap();
    }
    assert!(each.to_vector().sub(&expected).abs().amax(..).item() > 1e-3);
}

#[test]
fn sync_batch_norm_outside_of_a_recorded_step() {
    let mut model = cnn(SyncBatchNorm::new);
    let x = Tensor::randn([4, 1, 6, 6], &mut Generator::new(1));
    // Outside of a step, the layer computes the same as batch normalization, in training and in evaluation.
    let same = cnn(BatchNorm2d::new);
    for tapes in [[Tape::new(), Tape::new()], [0, 0].map(|seed| Tape::training(&mut Generator::new(seed)))] {
        let [own, other] = &tapes;
        assert_eq!(model.forward(own.constant(&x)).value(), same.forward(other.constant(&x)).value());
    }
    let alone = Group::alone();
    let mut parallel = DataParallel::new(&alone, &mut model, Sgd::new(0.1)).unwrap();
    let error = parallel.step(&mut model, 4, &mut Generator::new(0), |model, shard| {
        let tape = Tape::training(&mut shard.generator);
        let loss = model.try_forward(tape.constant(&x))?.sum(..);
        Ok((loss.item(), loss.backward()))
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("use `step_recorded`") && error.contains("SyncBatchNorm(4)"), "{error}");
    // In a recorded step, no value can be read before the step evaluates the tapes.
    let error = parallel.step_recorded(&mut model, 4, &mut Generator::new(0), |model, tape, _| {
        let loss = model.try_forward(tape.constant(&x))?.sum(..);
        loss.try_value()?;
        Ok(loss)
    });
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Autograd(_)) && error.to_string().contains("read no values"), "{error}");
}

/// Returns the errors of `try_sharded` and `try_sharded_parameters`, and checks that they leave the model as it was.
fn refusals(optimizer: impl Optimizer) -> [Error; 2] {
    let (group, mut model) = (Group::alone(), Linear::without_bias(3, 4, &mut Generator::new(0)));
    let before = model.to_vector();
    let states = DataParallel::new(&group, &mut model, optimizer.clone()).unwrap().try_sharded(&model).err().unwrap();
    let parallel = DataParallel::new(&group, &mut model, optimizer).unwrap();
    let parameters = parallel.try_sharded_parameters(&mut model).err().unwrap();
    assert_eq!(model.to_vector(), before);
    [states, parameters]
}

#[test]
fn optimisers_of_whole_matrices_are_refused_at_the_callers_line() {
    for (errors, expected) in [(refusals(Adafactor::new(0.1)), "Adafactor"), (refusals(Muon::new(0.1)), "Muon")] {
        for (error, operation) in errors.into_iter().zip(["sharded", "sharded_parameters"]) {
            let text = error.to_string();
            assert!(text.starts_with(&format!("{expected} cannot be sharded: ")), "{text}");
            assert!(text.contains("hint: use an elementwise optimiser, such as AdamW"), "{text}");
            let Error::NotElementwise { optimizer, at } = error else { panic!("{text}") };
            assert_eq!((optimizer, at.operation, at.location.file()), (expected, operation, file!()));
        }
    }
    let (group, mut model) = (Group::alone(), Linear::<f32>::without_bias(3, 4, &mut Generator::new(0)));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let parallel = DataParallel::new(&group, &mut model, Adafactor::new(0.1)).unwrap();
        drop(parallel.sharded(&model));
    }));
    let text = *panicked.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("recorded_steps.rs") && text.contains("in sharded"), "{text}");
    let parallel = DataParallel::new(&group, &mut model, Adam::new(0.1)).unwrap();
    assert!(parallel.try_sharded(&model).is_ok());
}

/// Checks that a setting after sharding keeps the parameters and states in the shards, or fails with an error.
#[test]
fn settings_after_sharding_lose_nothing() {
    let group = Group::alone();
    let make = || Linear::<f32>::without_bias(3, 4, &mut Generator::new(0));
    let x = Tensor::ones([8, 3]);
    let step = |parallel: &mut DataParallel<'_, Adam<f32>>, model: &mut Linear<f32>| {
        let step = parallel.step_recorded(model, 8, &mut Generator::new(0), |model, tape, shard| {
            Ok(model.try_forward(tape.constant(shard.of(&x)))?.square().mean(..))
        });
        step.unwrap().loss
    };
    let parallel = |model: &mut Linear<f32>| DataParallel::new(&group, model, Adam::new(0.1)).unwrap();
    // Sharding again keeps the values and the states.
    let expected = {
        let mut model = make();
        let mut parallel = parallel(&mut model);
        (0..3).map(|_| step(&mut parallel, &mut model)).collect::<Vec<_>>()
    };
    let mut model = make();
    let mut again = parallel(&mut model).sharded_parameters(&mut model).sharded_parameters(&mut model);
    let mut losses = vec![step(&mut again, &mut model)];
    again = again.sharded_parameters(&mut model);
    losses.push(step(&mut again, &mut model));
    again.gather(&mut model).unwrap();
    again = again.sharded(&model);
    losses.push(step(&mut again, &mut model));
    assert_eq!(losses, expected);

    // A setting that would lose values, which are only in the shards, is an error.
    let mut model = make();
    let error = parallel(&mut model).sharded_parameters(&mut model).try_fast().err().unwrap();
    assert!(matches!(error, Error::ShardedParameters(_)) && error.to_string().contains("`gather`"), "{error}");
    let mut model = make();
    let error = parallel(&mut model).sharded_parameters(&mut model).try_sharded(&model).err().unwrap();
    assert!(matches!(error, Error::ShardedParameters(_)) && error.to_string().contains("`gather`"), "{error}");
    let mut model = make();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        drop(parallel(&mut model).sharded_parameters(&mut model).fast());
    }));
    let text = *panicked.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("`gather`"), "{text}");
    // A setting that would lose states, which are only in the shards, is an error.
    let mut model = make();
    let mut stepped = parallel(&mut model).sharded(&model);
    step(&mut stepped, &mut model);
    let error = stepped.try_fast().err().unwrap();
    assert!(matches!(error, Error::ShardedStates(_)), "{error}");
    let mut model = make();
    let mut stepped = parallel(&mut model).sharded(&model);
    step(&mut stepped, &mut model);
    model.freeze("weight");
    let error = stepped.try_sharded_parameters(&mut model).err().unwrap();
    assert!(matches!(error, Error::FrozenChanged) && model.to_vector().iter().all(|x| x.is_finite()), "{error}");

    // The same settings are allowed before the first step, when there are no states, and after `gather` has restored the values.
    let mut model = make();
    let before = model.to_vector();
    assert!(parallel(&mut model).sharded(&model).try_fast().is_ok());
    let mut gathered = parallel(&mut model).sharded_parameters(&mut model);
    gathered.gather(&mut model).unwrap();
    assert!(step(&mut gathered.fast(), &mut model).is_finite());
    let mut model = make();
    let mut frozen = parallel(&mut model).sharded_parameters(&mut model);
    model.freeze("weight");
    frozen.gather(&mut model).unwrap();
    assert_eq!(model.to_vector(), before);
    let error = frozen.release(&mut model).unwrap_err();
    assert!(matches!(error, Error::FrozenChanged) && model.to_vector() == before, "{error}");
}

/// Returns the error of a step in which the shards with an odd index also use a second layer. If `synchronized` is true, batch
/// normalization over all shards follows this layer.
fn step_of_different_shards(group: &Group, recorded: bool, synchronized: bool) -> String {
    let generator = &mut Generator::new(0);
    let second = |generator: &mut Generator| Sequential::<f64>::new().add(Linear::new(4, 4, generator));
    let mut model = (Linear::<f64>::new(4, 4, generator), second(generator));
    if synchronized {
        model.1 = model.1.add(SyncBatchNorm::new(4));
    }
    let mut parallel = DataParallel::new(group, &mut model, Sgd::new(0.1)).unwrap();
    let (before, x) = (bytes(&model), Tensor::randn([64, 4], generator));
    let result = if recorded {
        parallel.step_recorded(&mut model, 64, generator, |model, tape, shard| {
            let y = model.0.forward(tape.constant(shard.of(&x)));
            Ok(if shard.number % 2 == 1 { model.1.forward(y) } else { y }.square().mean(..))
        })
    } else {
        parallel.step(&mut model, 64, generator, |model, shard| {
            Ok(Tape::new().value_and_gradients(|tape| {
                let y = model.0.forward(tape.constant(shard.of(&x)));
                if shard.number % 2 == 1 { model.1.forward(y) } else { y }.square().mean(..)
            }))
        })
    };
    assert_eq!(bytes(&model), before, "nothing is updated");
    let error = result.unwrap_err();
    assert!(matches!(error, Error::ShardsDiffer { shard: 1, .. }), "{error}");
    error.to_string()
}

#[test]
fn shards_with_gradients_of_different_parameters_are_refused() {
    let [group] = Group::in_process::<1>();
    for (recorded, synchronized) in [(false, false), (true, false), (true, true)] {
        let message = step_of_different_shards(&group, recorded, synchronized);
        assert!(message.contains("shard 1 of the batch has 4 gradients of 40 elements") || synchronized, "{message}");
        assert!(message.contains("but the first shard has 2 gradients of 20 elements"), "{message}");
    }
}

#[test]
fn a_mean_over_ranks_has_no_gradients_of_variables_and_keeps_the_evaluated_layer() {
    fn check(group: &Group) {
        let generator = &mut Generator::new(1);
        let mut model: Sequential<f64> = Sequential::new().add(Linear::new(2, 1, generator)).add(Dropout::new(0.5));
        let tape = Tape::new();
        let x = tape.var(&Tensor::full([3, 2], group.rank() as f64 + 1.0));
        // A loss with a gradient penalty needs the derivative with respect to its input.
        let y = model.forward(x).sum(..);
        let mut gradients = (y + y.grad([x])[0].square().sum(..)).backward();
        assert!(gradients.get(x).is_some());
        group.average(&mut gradients).unwrap();
        let error = gradients.try_of(x).unwrap_err().to_string();
        assert!(error.contains("gradients of parameters only") && error.contains("or `average`"), "{error}");
        let warnings = compat::collect();
        Sgd::new(0.1).step(&mut model, &gradients);
        assert_eq!(warnings.warnings().len(), 1, "{:?}", warnings.warnings());
    }
    on_ranks::<1, ()>(check);
    on_ranks::<2, ()>(check);
}

#[test]
fn a_step_with_gradients_of_an_evaluating_tape_is_reported() {
    fn check(group: &Group) {
        let mut model: Sequential<f64> =
            Sequential::new().add(Linear::new(2, 1, &mut Generator::new(1))).add(Dropout::new(0.5));
        let mut parallel = DataParallel::new(group, &mut model, Sgd::new(0.1)).unwrap();
        let warnings = compat::collect();
        let line = line!() + 1;
        parallel
            .step(&mut model, 8, &mut Generator::new(2), |model, _| {
                let x = Tensor::ones([1, 2]);
                Ok(Tape::new().value_and_gradients(|tape| model.forward(tape.constant(&x)).sum(..)))
            })
            .unwrap();
        let [compat::Warning::Evaluating { layer, at }] = warnings.warnings()[..] else {
            panic!("{:?}", warnings.warnings())
        };
        assert_eq!(layer, "Dropout");
        assert!((line..line + 3).contains(&at.location.line()), "{at:?}");
    }
    on_ranks::<1, ()>(check);
    on_ranks::<2, ()>(check);
}
