//! Adds a bias to feature maps: one value per channel, for every pixel of every sample.
//!
//! `[4, 32, 14, 14] + [32]` fails: shapes are aligned at the right, so 14 is compared with 32. Two dimensions of size 1 after
//! the channel move the bias to the channels.

use std::process::ExitCode;

use wengert::prelude::*;
use wengert::tensor::broadcast::Expansion;
use wengert::tensor::explain_named;
use wengert_options::{Options, Result, run};

fn main() -> ExitCode {
    run(Options::new("bias_add", "A bias on feature maps: one number per channel"), bias_add)
}

fn bias_add(options: &Options) -> Result {
    let maps = Tensor::<f32>::zeros([4, 32, 14, 14]);
    let bias = Tensor::<f32>::linspace(0.0, 3.1, 32);

    println!("1. maps [4, 32, 14, 14] + bias [32] fails, and the error shows the place and a remedy:\n");
    match maps.try_add(&bias) {
        Ok(_) => unreachable!("14 and 32 do not fit"),
        Err(error) => println!("{error}\n"),
    }

    println!("2. With two dimensions of size 1 after the channel, the bias fits the channels:\n");
    let bias = bias.unsqueeze(-1).unsqueeze(-1);
    let sum = &maps + &bias;
    let explanation = explain_named(&[("maps", maps.shape()), ("bias", bias.shape())]);
    println!("{explanation}\n");
    options.write("bias_add.svg", explanation.to_svg())?;
    println!();

    println!("3. The expanded dimensions. Nothing was copied:\n");
    let Some(expansion) = Expansion::new(bias.shape(), sum.shape()) else { unreachable!("the shapes broadcast") };
    println!("   added:     {:?}  the same for every sample", expansion.added().collect::<Vec<_>>());
    println!("   stretched: {:?}  the same for every pixel", expansion.stretched().collect::<Vec<_>>());
    let seen = bias.expand_as(&sum);
    println!("   strides {:?}, {} numbers in memory for {}\n", seen.strides(), bias.numel(), seen.numel());

    println!("4. The gradient of the bias is summed over these dimensions, to [32, 1, 1]:\n");
    let tape = Tape::<f32>::new();
    let (m, b) = (tape.constant(&maps), tape.var(&bias));
    let gradients = (m + b).sum(..).backward();
    let gradient = gradients.of(b);
    println!(
        "   shape {}, each element 4 x 14 x 14 = {}",
        gradient.shape(),
        gradient.get(&[0, 0, 0]).unwrap_or_default()
    );
    assert_eq!(gradient, &Tensor::full([32, 1, 1], 784.0));
    Ok(())
}
