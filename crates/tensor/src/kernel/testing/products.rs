//! Tests matrix products over every layout against the oracle (simple loops over indices).

use proptest::collection::vec;
use proptest::prelude::*;

use crate::Shape;
use crate::kernel::testing::layouts::{Recipe, generator, recipes};
use crate::kernel::testing::numbers::Oracle;
use crate::kernel::testing::oracle::products;
use crate::kernel::testing::support::{assert_bits, large_recipes, site, unsigned};
use crate::ops::TensorLike;

fn product<T: Oracle>(batch: &Shape, [m, k, n]: [usize; 3], recipes: [&Recipe; 2], seed: u64) {
    let rng = &mut generator(seed);
    let with = |rows, columns| batch.iter().copied().chain([rows, columns]).collect::<Shape>();
    let x = recipes[0].tensor(&with(m, k), || T::small(rng));
    let y = recipes[1].tensor(&with(k, n), || T::small(rng));
    let expected: Vec<T> = products(x.source(), y.source()).into_iter().map(unsigned).collect();
    // A sum of one term may be -0, for example 0 times a negative number. The expected sums start from 0, so the signs of zeros are
    // ignored.
    assert_bits(&x.apply_matmul(&y, site()).unwrap().map(unsigned), &expected, (batch, m, k, n));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn products_equal_the_oracle(
        batch in vec(0usize..4, 0..=3), sizes in prop::array::uniform3(0usize..8), a in recipes(), b in recipes(),
        seed in any::<u64>(),
    ) {
        let batch = Shape::from(batch);
        product::<f32>(&batch, sizes, [&a, &b], seed);
        product::<f64>(&batch, sizes, [&a, &b], seed);
        product::<i64>(&batch, sizes, [&a, &b], seed);
        product::<u8>(&batch, sizes, [&a, &b], seed);
        product::<bool>(&batch, sizes, [&a, &b], seed);
    }
}

#[test]
fn large_products_equal_the_oracle() {
    let table: [(&[usize], [usize; 3]); 23] = [
        // These products have few columns.
        (&[], [70, 200, 5]),
        (&[], [9, 1100, 3]),
        (&[], [150, 500, 10]),
        (&[2], [66, 64, 16]),
        (&[], [90, 300, 1]),
        (&[], [400, 180, 1]),
        (&[], [300, 6, 5]),
        (&[], [40, 63, 10]),
        // These products have sums of two terms.
        (&[], [300, 2, 24]),
        (&[], [1100, 2, 130]),
        // These products have a single result.
        (&[], [1, 300, 1]),
        (&[3], [1, 65, 1]),
        // This product has one row, which is computed in several ranges of columns.
        (&[], [1, 13, 9001]),
        // These products have few rows.
        (&[], [6, 33, 200]),
        (&[], [11, 700, 37]),
        // These products have various sizes. In some, the columns fill whole vectors.
        (&[], [5, 30, 16]),
        (&[3], [7, 9, 70]),
        (&[4], [16, 16, 32]),
        (&[], [130, 70, 65]),
        (&[], [1, 3000, 400]),
        (&[], [333, 7, 500]),
        (&[3], [40, 70, 50]),
        (&[3, 2], [17, 100, 64]),
    ];
    let recipes = large_recipes();
    for (batch, sizes) in table {
        for (i, a) in recipes.iter().enumerate() {
            let b = &recipes[(i + 1) % recipes.len()];
            product::<f32>(&Shape::from(batch), sizes, [a, b], i as u64);
            product::<f64>(&Shape::from(batch), sizes, [a, b], i as u64);
        }
        // All integer products run the same code, so one pair of layouts is enough.
        product::<i64>(&Shape::from(batch), sizes, [&recipes[0], &recipes[1]], 0);
    }
}
