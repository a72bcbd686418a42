use wengert_tensor::Tensor;

use super::*;

#[test]
fn different_shapes_are_errors() {
    let (column, row) = (Tensor::from([[1.0], [2.0]]), Tensor::from([1.0, 2.0]));
    let error = try_margin_ranking_loss(&column, &row, &row).unwrap_err();
    let sentence = "margin_ranking_loss: the second tensor has shape [2], expected [2, 1]: `reshape([2, 1])`";
    assert_eq!(error.sentence(), sentence);
    assert!(try_gaussian_nll_loss(&column, &row, &column).is_err());
    assert!(try_triplet_margin_loss(&column, &column, &row).is_err());
    assert!(try_cosine_embedding_loss(&column, &column, &column).is_err());
    assert!(try_cosine_embedding_loss(&column, &column, &row).is_ok());
    assert!(TripletMarginLoss::new().try_by_distance(&column, &row, &column, |x, _| x.clone()).is_err());
}

/// The text of the error is PyTorch's, both for `of` and for `by_distance`.
#[test]
fn a_margin_that_is_not_positive_is_an_error() {
    let x = Tensor::from([[1.0], [2.0]]);
    for (margin, number) in [(0.0, "0"), (-1.5, "-1.5")] {
        let loss = TripletMarginLoss::new().margin(margin);
        let expected = format!("margin must be greater than 0, got {number}");
        assert_eq!(loss.try_of(&x, &x, &x).unwrap_err().sentence(), expected);
        assert_eq!(loss.try_by_distance(&x, &x, &x, |x, _| x.clone()).unwrap_err().sentence(), expected);
    }
}
