use wengert_autograd::Tape;
use wengert_tensor::Tensor;
use wengert_tensor::ops::LossReduction;

use super::*;

/// Computes the documented formula of the cross-entropy directly, one target at a time, for logits `[n, c, d]` and
/// targets `[n, d]`. Returns the loss of each target, and the sum of the weights of the target classes that are not
/// ignored.
fn naive(loss: &CrossEntropyLoss<f64>, logits: &Tensor<f64>, targets: &Tensor<i64>) -> (Vec<f64>, f64) {
    let (classes, d) = (logits.shape()[1], logits.shape()[2]);
    let (mut losses, mut total) = (Vec::new(), 0.0);
    let weight = |class: usize| loss.weight.as_ref().map_or(1.0, |weight| weight.get(&[class]).unwrap());
    for (position, target) in targets.iter().enumerate() {
        if target == loss.formula.ignore_index {
            losses.push(0.0);
            continue;
        }
        let x = |class: usize| logits.get(&[position / d, class, position % d]).unwrap();
        let sum: f64 = (0..classes).map(|class| x(class).exp()).sum();
        let smoothing = loss.formula.label_smoothing;
        losses.push(
            (0..classes)
                .map(|class| {
                    let hit = if class == target as usize { 1.0 - smoothing } else { 0.0 };
                    -(hit + smoothing / classes as f64) * weight(class) * (x(class).exp() / sum).ln()
                })
                .sum(),
        );
        total += weight(target as usize);
    }
    (losses, total)
}

#[test]
fn every_option_follows_the_documented_formula() {
    let logits = Tensor::from_fn([2, 3, 4], |i| ((7 * i[0] + 5 * i[1] + 3 * i[2]) % 11) as f64 * 0.3 - 1.0);
    let targets = Tensor::from([[0, 1, 2, -100], [2, 2, -100, 1]]);
    for weight in [None, Some(Tensor::from([0.5, 2.0, 1.0]))] {
        for label_smoothing in [0.0, 0.1, 1.0] {
            let formula = CrossEntropy { ignore_index: -100, label_smoothing };
            let loss = |reduction| CrossEntropyLoss { formula, weight: weight.clone(), reduction };
            let (expected, total) = naive(&loss(LossReduction::None), &logits, &targets);
            let sum: f64 = expected.iter().sum();
            // The bound allows for about ten rounding errors of values below 10.
            let close = |x: f64, y: f64| assert!((x - y).abs() < 100.0 * f64::EPSILON, "{x} is not {y}");
            let losses = loss(LossReduction::None).of(&logits, &targets);
            assert_eq!(losses.shape(), targets.shape());
            losses.iter().zip(&expected).for_each(|(x, &y)| close(x, y));
            close(loss(LossReduction::Sum).of(&logits, &targets).item(), sum);
            close(loss(LossReduction::Mean).of(&logits, &targets).item(), sum / total);
            let tape = Tape::new();
            close(loss(LossReduction::Mean).of(&tape.var(&logits), &targets).item(), sum / total);
        }
    }
}

#[test]
fn the_gradient_is_softmax_minus_target() {
    let tape = Tape::<f64>::new();
    let logits = tape.var(&Tensor::from([[0.0, 3.0f64.ln()], [5.0, 5.0]]));
    let loss = CrossEntropyLoss::new().reduction(LossReduction::Sum);
    let gradients = loss.of(&logits, &Tensor::from([0, -100])).backward();
    let expected = [0.25 - 1.0, 0.75, 0.0, 0.0];
    for (x, y) in gradients.of(logits).iter().zip(expected) {
        assert!((x - y).abs() < 4.0 * f64::EPSILON, "{x} is not {y}");
    }
}

#[test]
fn infinite_logits_and_empty_batches() {
    let loss = |logits: [f64; 2], target: i64| cross_entropy(&Tensor::from(logits), &Tensor::scalar(target)).item();
    assert_eq!(loss([1000.0, 0.0], 0), 0.0);
    assert_eq!(loss([1000.0, 0.0], 1), 1000.0);
    assert_eq!(loss([0.0, f64::NEG_INFINITY], 0), 0.0);
    assert_eq!(loss([0.0, f64::NEG_INFINITY], 1), f64::INFINITY);
    assert!(loss([0.0, 0.0], -100).is_nan(), "the mean of no samples is NaN");
    // An ignored sample has no effect, even if one of its logits is NaN.
    let logits = Tensor::from([[f64::NAN, 1.0], [0.0, 0.0]]);
    assert_eq!(cross_entropy(&logits, &Tensor::from([-100, 1])).item(), 2.0f64.ln());
    assert!(cross_entropy(&Tensor::<f64>::zeros([0, 3]), &Tensor::zeros([0])).item().is_nan());
    let sum = CrossEntropyLoss::new().reduction(LossReduction::Sum);
    assert_eq!(sum.of(&Tensor::<f64>::zeros([0, 3]), &Tensor::zeros([0])).item(), 0.0);
    assert_eq!(sum.of(&Tensor::<f64>::zeros([1, 0]), &Tensor::from([-100])).item(), 0.0);
}

#[test]
fn the_texts_of_errors_are_pytorchs() {
    let logits = Tensor::<f64>::zeros([3, 4]);
    let error = |targets: &Tensor<i64>| try_cross_entropy(&logits, targets).unwrap_err().sentence();
    assert!(error(&Tensor::from([0, 4, 1])).starts_with("Target 4 is out of bounds."));
    assert!(error(&Tensor::from([0, 3, -1])).contains("(It is number 2 of the targets"));
    assert_eq!(error(&Tensor::zeros([2])), "Expected input batch_size (3) to match target batch_size (2).");
    assert!(error(&Tensor::zeros([3, 1])).starts_with("0D or 1D target tensor expected"));
    let loss = CrossEntropyLoss::new().weight(&Tensor::ones([3]));
    let error = loss.try_of(&logits, &Tensor::zeros([3])).unwrap_err();
    assert!(error.sentence().starts_with("weight tensor should be defined either for all 4 classes"), "{error}");
    assert!(error.to_string().contains(file!()), "{error}");
    let loss = CrossEntropyLoss::new().label_smoothing(f64::NAN);
    assert!(loss.try_of(&logits, &Tensor::zeros([3])).is_err());
}

#[test]
fn probabilities_that_do_not_fit_are_errors() {
    let logits = Tensor::<f64>::zeros([3, 4]);
    let probabilities = Tensor::full([3, 4], 0.25);
    let loss = CrossEntropyLoss::new();
    let value = loss.try_of_probabilities(&logits, &probabilities).unwrap().item();
    assert!((value - 4.0f64.ln()).abs() < 1e-12, "{value}");
    assert!(loss.try_of_probabilities(&logits, &Tensor::zeros([3, 5])).is_err());
    assert!(loss.try_of_probabilities(&Tensor::scalar(0.0), &Tensor::scalar(1.0)).is_err());
    assert!(loss.clone().weight(&Tensor::ones([3])).try_of_probabilities(&logits, &probabilities).is_err());
    for smoothing in [-0.1, 1.1, f64::NAN] {
        assert!(loss.clone().label_smoothing(smoothing).try_of_probabilities(&logits, &probabilities).is_err());
    }
}

#[test]
fn ignored_targets_without_classes_have_empty_gradients() {
    let tape = Tape::<f64>::new();
    let logits = tape.var(&Tensor::zeros([2, 0]));
    let loss = CrossEntropyLoss::new().weight(&Tensor::zeros([0]));
    for (reduction, value) in [(LossReduction::Sum, 0.0), (LossReduction::Mean, f64::NAN)] {
        let found = loss.clone().reduction(reduction).of(&logits, &Tensor::from([-100, -100]));
        let item = found.value().item();
        assert!(item == value || item.is_nan() && value.is_nan(), "{item}");
        assert_eq!(found.backward().of(logits).shape(), &[2, 0]);
    }
}
