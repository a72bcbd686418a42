//! What all pictures have in common: colours, text, pixels.

use std::io::Write as _;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use plotters::prelude::*;

/// The colours of lines and classes, of M. Bostock's and Tableau's scale `category10`.
pub(super) const PALETTE: [RGBColor; 10] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 96, 20),
    RGBColor(44, 140, 60),
    RGBColor(200, 40, 50),
    RGBColor(128, 90, 180),
    RGBColor(140, 86, 75),
    RGBColor(210, 100, 180),
    RGBColor(110, 110, 110),
    RGBColor(160, 160, 30),
    RGBColor(20, 160, 180),
];
pub(super) const INK: RGBColor = RGBColor(60, 60, 60);
pub(super) const GRID: RGBColor = RGBColor(232, 232, 232);

pub(super) fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// The colour of line or class number `number`.
pub(super) fn colour(number: usize) -> RGBColor {
    PALETTE[number % PALETTE.len()]
}

/// Text between the tags of SVG and HTML, or in quotes there.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Three significant digits without trailing zeros: `0.0123`, `2`, `150`, `2.5e-7`.
pub(super) fn significant(x: f64) -> String {
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match x.abs() {
        0.0 => "0".to_owned(),
        size if (1e-4..1e6).contains(&size) => {
            let digits = (2 - size.log10().floor() as i32).max(0) as usize;
            trimmed(&format!("{x:.digits$}"))
        }
        _ => match format!("{x:.2e}").split_once('e') {
            Some((digits, exponent)) => format!("{}e{exponent}", trimmed(digits)),
            None => format!("{x}"), // infinite or NaN
        },
    }
}

/// A number beside an axis that goes up to `largest`; what is 0 but for rounding is 0.
pub(super) fn on_axis(x: f64, largest: f64) -> String {
    significant(if x.abs() < 1e-9 * largest { 0.0 } else { x })
}

/// Red, green and blue of each pixel, row by row, as the address of an image (`data:image/png;base64,…`). The format:
/// <https://www.w3.org/TR/png/>. Writing it takes these few lines, so that pictures need no other crate.
pub(super) fn png(pixels: &[[u8; 3]], width: usize) -> String {
    let height = pixels.len().checked_div(width).unwrap_or(0);
    let size = [width as u32, height as u32].map(u32::to_be_bytes).concat();
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in pixels.chunks(width.max(1)) {
        // Each row begins with its filter, which is none. Writing to memory does not fail.
        let _ = packed.write_all(&[&[0][..], row.as_flattened()].concat());
    }
    let packed = packed.finish().unwrap_or_default();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    // Eight bits for each of three colours.
    for (kind, content) in [(b"IHDR", &[&size[..], &[8, 2, 0, 0, 0]].concat()), (b"IDAT", &packed), (b"IEND", &vec![])]
    {
        let mut crc = Crc::new();
        crc.update(kind);
        crc.update(content);
        bytes.extend((content.len() as u32).to_be_bytes());
        bytes.extend(kind);
        bytes.extend(content);
        bytes.extend(crc.sum().to_be_bytes());
    }
    format!("data:image/png;base64,{}", base64(&bytes))
}

/// Base64 of RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - three.len()));
        for position in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * position)) as usize & 63] as char;
            text.push(if position <= three.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (x, expected) in [
            (0.012345, "0.0123"),
            (2.0, "2"),
            (150.4, "150"),
            (0.5, "0.5"),
            (0.0, "0"),
            (2.5e-7, "2.5e-7"),
            (1e20, "1e20"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(significant(x), expected);
        }
        assert_eq!([on_axis(2.2e-16, 1.0), on_axis(2.2e-16, 1e-15)], ["0", "2.2e-16"]);
    }

    /// The vectors of RFC 4648; a picture of two pixels as Python's zlib and struct write it.
    #[test]
    fn pictures_are_png_in_base64() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        let address = png(&[[255, 0, 0], [0, 0, 255]], 2);
        // Signature, length and kind of the first part, sizes 2 and 1.
        assert!(address.starts_with("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjd"), "{address}");
        assert!(address.ends_with("AAAABJRU5ErkJggg=="), "{address}");
    }
}
