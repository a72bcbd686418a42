//! Tests of private functions. The library has no test program of its own, because the transforms take long to compile. So this file compiles
//! the two files of these functions once more.

#[path = "../../src/length.rs"]
mod length;
#[path = "../../src/norm.rs"]
mod norm;

use length::fast_length;
use norm::Norm;

#[test]
fn norm_names_parse_and_factors_multiply_to_one_over_n() {
    assert_eq!("ortho".parse(), Ok(Norm::Ortho));
    assert_eq!("x".parse::<Norm>(), Err("Invalid normalization mode: \"x\"".to_owned()));
    for norm in [Norm::Backward, Norm::Ortho, Norm::Forward] {
        assert!((norm.factor(5, false) * norm.factor(5, true) - 0.2).abs() < 1e-16);
        assert_eq!(norm.factor(5, true), norm.swapped().factor(5, false));
    }
}

#[test]
fn lengths_have_small_factors() {
    let table = [(0, 1), (1, 1), (2, 2), (7, 8), (11, 12), (17, 18), (31, 32), (131, 144), (1025, 1080)];
    for (n, expected) in table {
        assert_eq!(fast_length(n), expected, "{n}");
    }
}
