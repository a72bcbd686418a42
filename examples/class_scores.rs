//! A table of scores `[class, student, course]`, and three ways to give points away.
//!
//! A missing dimension means "the same for all"; a dimension of size 1 means "one, shared by all".

use wengert::prelude::*;

fn main() {
    let (classes, students, courses) = (2, 3, 4);
    let scores = Tensor::from_fn([classes, students, courses], |index| {
        60.0 + 10.0 * index[0] as f64 + 3.0 * index[1] as f64 + index[2] as f64
    });
    show("scores [class, student, course]", &scores);

    // One number meets every element.
    show("+ 5.0: five points for everybody", &(&scores + 5.0));

    // [4] lines up with the courses; the missing dimensions mean every student of every class.
    let course = Tensor::from([0.0, 0.0, 5.0, 0.0]);
    show("+ [4]: five points in the third course, for everybody", &(&scores + &course));

    // [3, 1] lines up with the students; the 1 means all of their courses.
    let student = Tensor::from([[0.0], [10.0], [0.0]]);
    show("+ [3, 1]: ten points for the second student of each class, in every course", &(&scores + &student));

    // [2, 1, 1] lines up with the classes.
    let class = Tensor::from([[[1.0]], [[-1.0]]]);
    show("+ [2, 1, 1]: one point up for the first class, one down for the second", &(&scores + &class));

    // [2] would have to be classes, but it lines up with the courses.
    match scores.try_add(&Tensor::from([1.0, -1.0])) {
        Ok(_) => unreachable!("2 does not meet 4"),
        Err(error) => println!("+ [2] fails:\n{error}"),
    }
}

fn show(what: &str, scores: &Tensor<f64>) {
    println!("{what}\n{scores}\n");
}
