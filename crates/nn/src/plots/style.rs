//! Colours, texts and pixel images that all pictures use.

use std::io::Write as _;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use plotters::prelude::*;

/// The colours of lines and classes, most of them darker variants of the scale `category10` of M. Bostock and Tableau.
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
/// The colour of texts and axes.
pub(super) const INK: RGBColor = RGBColor(60, 60, 60);
/// The colour of grid lines.
pub(super) const GRID: RGBColor = RGBColor(232, 232, 232);

/// The number of drawing units per pixel of the picture. plotters rounds each coordinate to a whole unit, and a tenth of a pixel is
/// invisible. The cost is one more digit for each coordinate.
pub(super) const UNITS_PER_PIXEL: u32 = 10;

/// Returns the style of a text whose size is given in pixels.
pub(super) fn text_style(size: u32) -> TextStyle<'static> {
    ("sans-serif", size * UNITS_PER_PIXEL).into_font().color(&INK)
}

/// Returns `drawing`, an SVG image with coordinates in drawing units (see [`UNITS_PER_PIXEL`]), as an image of `size` pixels. Changes the attributes
/// `width` and `height`, and keeps the `viewBox`.
pub(super) fn scale_to_pixels(drawing: &str, size: (u32, u32)) -> String {
    let header = |(width, height): (u32, u32)| format!("width=\"{width}\" height=\"{height}\"");
    drawing.replacen(&header((size.0 * UNITS_PER_PIXEL, size.1 * UNITS_PER_PIXEL)), &header(size), 1)
}

/// Returns the colour of the line or class with index `number`.
pub(super) fn colour(number: usize) -> RGBColor {
    PALETTE[number % PALETTE.len()]
}

/// Escapes a text for SVG and HTML. The result can also be the value of an attribute in double quotes.
pub(super) fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a number as text with three significant digits and without trailing zeros: `0.0123`, `2`, `150`, `2.5e-7`. A number from 1000 to
/// a million keeps all digits before the point.
pub(super) fn format_significant(x: f64) -> String {
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
            None => format!("{x}"), // This value is infinite or NaN.
        },
    }
}

/// Returns the label of a value on an axis that goes up to `largest`. A value that differs from 0 only by rounding is shown as 0.
pub(super) fn format_tick(x: f64, largest: f64) -> String {
    format_significant(if x.abs() < 1e-9 * largest { 0.0 } else { x })
}

/// Returns a data URL, `data:image/png;base64,…`, with an image as PNG. `pixels` has the red, green and blue of each pixel, row by row. The
/// format is described at <https://www.w3.org/TR/png/>. Writing a PNG here avoids a dependency on a crate for PNG.
pub(super) fn png(pixels: &[[u8; 3]], width: usize) -> String {
    let height = pixels.len().checked_div(width).unwrap_or(0);
    let size = [width as u32, height as u32].map(u32::to_be_bytes).concat();
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in pixels.chunks(width.max(1)) {
        // In a PNG, each row begins with the index of its filter (a transformation before the compression), which is 0 for no filter.
        // Writing to memory cannot fail.
        let _ = packed.write_all(&[&[0][..], row.as_flattened()].concat());
    }
    let packed = packed.finish().unwrap_or_default();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    // The header has the size, then 8 (the bits of each colour channel), then 2 (the code for red, green and blue), and three zeros.
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

/// Encodes bytes in Base64 (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    /// The digits of Base64.
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
            assert_eq!(format_significant(x), expected);
        }
        assert_eq!([format_tick(2.2e-16, 1.0), format_tick(2.2e-16, 1e-15)], ["0", "2.2e-16"]);
    }

    /// The expected values are the test vectors of RFC 4648, and an image of two pixels made by Python's zlib and
    /// struct.
    #[test]
    fn pictures_are_png_in_base64() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        let address = png(&[[255, 0, 0], [0, 0, 255]], 2);
        // A PNG begins with the signature, the length and kind of the first chunk, and the sizes, here 2 and 1.
        assert!(address.starts_with("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjd"), "{address}");
        assert!(address.ends_with("AAAABJRU5ErkJggg=="), "{address}");
    }
}
