//! Small grey images in a grid, with a line of text below each, as SVG.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use wengert::prelude::*;

use crate::Result;

/// An image `[h, w]` and what is written below it.
pub struct Image {
    /// 0 is white, 1 is black; what lies outside is clipped.
    pub pixels: Tensor,
    /// One line.
    pub caption: String,
}

const SIDE: f64 = 72.0;
const GAP: f64 = 22.0;
const LINE: f64 = 18.0;

/// The images in rows of `columns`, under a title.
///
/// # Errors
///
/// If the file cannot be written.
pub fn save_images(path: &Path, title: &str, columns: usize, images: &[Image]) -> Result {
    let captions = if images.iter().all(|image| image.caption.is_empty()) { 0.0 } else { LINE };
    let (right, down) = (SIDE + GAP, SIDE + GAP + captions);
    let width = GAP + right * columns as f64;
    let height = GAP + 2.0 * LINE + down * images.len().div_ceil(columns) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{GAP}\" y=\"{}\" font-size=\"16\" fill=\"#3c3c3c\">{}</text>\n",
        GAP + LINE,
        escaped(title)
    );
    for (number, Image { pixels, caption }) in images.iter().enumerate() {
        let left = GAP + right * (number % columns) as f64;
        let top = GAP + 2.0 * LINE + down * (number / columns) as f64;
        let [h, w] = *pixels.shape().sizes() else {
            return Err(format!("an image of shape {} is not [h, w]", pixels.shape()).into());
        };
        let side = SIDE / h.max(w) as f64;
        for (place, ink) in pixels.iter().enumerate() {
            let grey = (255.0 * (1.0 - ink.clamp(0.0, 1.0))).round() as u8;
            let (x, y) = (left + side * (place % w) as f64, top + side * (place / w) as f64);
            // A hair larger than it is, so that no light shows between two.
            writeln!(
                svg,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{0:.2}\" height=\"{0:.2}\" fill=\"#{grey:02x}{grey:02x}{grey:02x}\"/>",
                side + 0.3
            )?;
        }
        if !caption.is_empty() {
            let (x, y) = (left + SIDE / 2.0, top + SIDE + LINE - 3.0);
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"12\" fill=\"#3c3c3c\" text-anchor=\"middle\">{}</text>",
                escaped(caption)
            )?;
        }
    }
    svg.push_str("</svg>\n");
    Ok(fs::write(path, svg)?)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
