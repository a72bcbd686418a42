//! A bias on feature maps: one number per channel, added to every pixel of every sample.
//!
//! `[4, 32, 14, 14] + [32]` does not mean that: shapes meet at the right, and 14 meets 32. With two dimensions of size 1
//! behind it, the bias lines up with the channels.

use wengert::prelude::*;
use wengert::tensor::broadcast::Expansion;
use wengert::tensor::explain_named;

fn main() {
    let maps = Tensor::<f32>::zeros([4, 32, 14, 14]);
    let bias = Tensor::<f32>::linspace(0.0, 3.1, 32);

    println!("1. maps [4, 32, 14, 14] + bias [32] fails, and says where and why:\n");
    match maps.try_add(&bias) {
        Ok(_) => unreachable!("14 does not meet 32"),
        Err(error) => println!("{error}\n"),
    }

    println!("2. With two dimensions of size 1 behind it, the bias meets the channels:\n");
    let bias = bias.unsqueeze(-1).unsqueeze(-1);
    let sum = &maps + &bias;
    let explanation = explain_named(&[("maps", maps.shape()), ("bias", bias.shape())]);
    println!("{explanation}\n");
    match std::fs::create_dir_all("out").and_then(|()| std::fs::write("out/bias_add.svg", explanation.to_svg())) {
        Ok(()) => println!("   (the same as a picture: out/bias_add.svg)\n"),
        Err(error) => println!("   (no picture: {error})\n"),
    }

    println!("3. What was expanded, and that nothing was copied for it:\n");
    let Some(expansion) = Expansion::new(bias.shape(), sum.shape()) else { unreachable!("it was added just now") };
    println!("   added:     {:?}  the same for every sample", expansion.added().collect::<Vec<_>>());
    println!("   stretched: {:?}  the same for every pixel", expansion.stretched().collect::<Vec<_>>());
    let seen = bias.expand_as(&sum);
    println!("   strides {:?}, {} numbers in memory for {}\n", seen.strides(), bias.numel(), seen.numel());

    println!("4. Its gradient is summed over exactly these dimensions, back to [32, 1, 1]:\n");
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
}
