use super::*;

/// Tests warm-up and combined schedules with expected rates that are written by hand. The tests across crates compare schedules with
/// PyTorch.
#[test]
fn warmup_and_sequences_of_schedules() {
    let warm = ExponentialLR::new(8.0, 0.5).warmup(4);
    assert_eq!([0, 1, 3, 4, 5].map(|step| warm.lr(step)), [0.0, 2.0, 6.0, 8.0, 4.0]);
    assert_eq!(3.0.warmup(0).lr(0), 3.0);
    let three = 1.0.then(2, 2.0).then(4, 3.0);
    assert_eq!([0, 1, 2, 3, 4, 5].map(|step| three.lr(step)), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
    let boxed: Vec<Box<dyn Schedule>> = vec![Box::new(three), Box::new(StepLR::new(1.0, 1, 0.5).times(4.0))];
    assert_eq!([boxed[0].lr(9), boxed[1].lr(3)], [3.0, 0.5]);
    assert_eq!((|step: u64| step as f64).then(3, 0.0).lr(2), 2.0);
}

#[test]
fn after_its_last_step_the_rate_stays() {
    let far = u64::MAX;
    assert_eq!(LinearLR::new(1.0, 0.5, 2.0, 0).lr(0), 2.0);
    assert_eq!(LinearLR::new(1.0, 0.5, 2.0, 4).lr(far), 2.0);
    assert_eq!(PolynomialLR::new(1.0, 4, 2.0).lr(far), 0.0);
    assert_eq!([0, 4, far].map(|step| PolynomialLR::new(0.5, 4, 0.0).lr(step)), [0.5; 3]);
    assert_eq!(ExponentialLR::new(1.0, 0.5).lr(far), 0.0);
    let cycle = OneCycleLR::new(1.0, 10);
    assert_eq!((cycle.lr(9), cycle.lr(far)), (cycle.lr(10), 1.0 / 25.0 / 1e4));
    // Tests a cycle that only rises, a cycle that does not rise, and a cycle of one step.
    assert_eq!(cycle.clone().pct_start(1.0).lr(far), 1.0);
    assert_eq!(cycle.clone().pct_start(0.0).three_phase().lr(far), 1.0 / 25.0 / 1e4);
    assert!(OneCycleLR::new(1.0, 1).lr(0).is_finite());
    let restarts = CosineAnnealingWarmRestarts::new(1.0, 3);
    assert_eq!([restarts.lr(3 << 60), restarts.clone().t_mult(2).lr(9)], [1.0, 1.0]);
    assert!(restarts.t_mult(7).lr(far).is_finite());
}

#[test]
#[should_panic(expected = "StepLR: expected a step_size of at least 1, but got 0")]
fn a_step_size_of_0_panics() {
    StepLR::new(1.0, 0, 0.1);
}

#[test]
fn cycles_of_the_longest_lengths_have_finite_rates() {
    for (up, down) in [(u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX)] {
        let cycle = CyclicLR::new(1.0, 2.0).step_sizes(up, down);
        assert_eq!(cycle.lr(0), 1.0);
        assert!([1, 2, u64::MAX].iter().all(|&step| (1.0..=2.0).contains(&cycle.lr(step))), "{up} {down}");
    }
}

#[test]
#[should_panic(expected = "ReduceLROnPlateau: expected a factor from 0 to 1, 1 excluded, but got -1")]
fn a_negative_factor_panics() {
    let _ = ReduceLROnPlateau::new(1.0).factor(-1.0);
}
