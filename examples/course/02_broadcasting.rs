//! 2. Broadcasting: tensors of different shapes in one operation.
//!
//! Shapes are compared from the right. Two sizes fit if they are equal or if one of them is 1; a missing dimension counts as 1.
//! A dimension of size 1 repeats its element without a copy.
//!
//! See also `bias_add`, `image_shift` and `broadcast_warning`, which show single aspects in detail.

use std::process::ExitCode;

use wengert::prelude::*;
use wengert::tensor::explain_named;
use wengert_course::{Options, Result, run};

fn main() -> ExitCode {
    run(Options::new("02_broadcasting", "Tensors of different shapes in one operation"), broadcasting)
}

fn broadcasting(options: &Options) -> Result {
    println!("1. A row and a column make a table\n");
    let row = Tensor::<i64>::arange(8) + 1; // [8]
    let column = row.narrow(0, 0, 4).unsqueeze(1); // [4, 1]
    let table = &column * &row;
    println!("[4, 1] * [8] is {}:\n{table}\n", table.shape());

    println!("2. Scores [class, student, course], and points for some of them\n");
    let scores = Tensor::from_fn([2, 3, 4], |i| 60.0 + 10.0 * i[0] as f64 + 3.0 * i[1] as f64 + i[2] as f64);
    println!("scores {}:\n{scores}\n", scores.shape());
    // The missing dimensions mean every student of every class.
    let course = Tensor::from([0.0, 0.0, 5.0, 0.0]);
    println!("+ [4], five points in the third course:\n{}\n", &scores + &course);
    // The 1 means all courses of a student.
    let student = Tensor::from([[0.0], [10.0], [0.0]]);
    println!("+ [3, 1], ten points for the second student of each class:\n{}\n", &scores + &student);

    println!("3. A bias for each channel of a picture: the shape selects the dimension\n");
    let maps = Tensor::<f32>::zeros([4, 32, 14, 14]);
    let bias = Tensor::<f32>::linspace(0.0, 3.1, 32);
    if let Err(error) = maps.try_add(&bias) {
        println!("{error}\n");
    }
    let bias = bias.reshape([32, 1, 1]);
    let explanation = explain_named(&[("maps", maps.shape()), ("bias", bias.shape())]);
    println!("{explanation}\n");

    println!("4. A broadcast is a view: stride 0, no copy\n");
    let seen = bias.expand([4, 32, 14, 14]);
    println!("{} numbers in memory are read as {}, strides {:?}\n", bias.numel(), seen.numel(), seen.strides());
    assert!(seen.shares_storage(&bias));

    println!("5. The trap: [n, 1] minus [n] is [n, n]; there is no error, but a model would learn nothing useful\n");
    let (prediction, target) = (Tensor::<f32>::zeros([8, 1]), Tensor::<f32>::zeros([8]));
    let difference = &prediction - &target; // warns, on standard error, with this line
    println!("[8, 1] - [8] is {}: 64 differences of 8 predictions\n", difference.shape());
    assert_eq!(difference.shape(), &[8, 8]);

    options.write("bias.svg", explanation.to_svg())?;
    Ok(())
}
