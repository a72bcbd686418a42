//! Converts a drawing to the numbers that the network reads.
//!
//! The digits of the data set were made the same way (E. Alpaydin and C. Kaynak, 1998): a digit of 32 x 32 black or white pixels, divided
//! into squares of 4 x 4. A number is the count of black pixels in a square.

/// The number of squares in a row or column of the grid.
pub const SIDE: usize = 8;

/// The number of squares of the grid, which is the number of inputs of the network.
pub const SQUARES: usize = SIDE * SIDE;

/// The side of a square, in pixels of the scaled digit.
const CELL: usize = 4;

/// The smallest ink, from 0 to 255, of a pixel that counts as black.
const BLACK: u8 = 128;

/// A square image: the ink of each pixel from 0 to 255, row by row.
struct Image<'i> {
    ink: &'i [u8],
    side: usize,
}

impl Image<'_> {
    /// Returns true if the pixel is black. Pixels outside the image are white.
    fn is_black(&self, row: isize, column: isize) -> bool {
        let inside = |position: isize| usize::try_from(position).ok().filter(|&position| position < self.side);
        match (inside(row), inside(column)) {
            (Some(row), Some(column)) => self.ink[row * self.side + column] >= BLACK,
            _ => false,
        }
    }

    /// Returns the first and the last row with a black pixel, and the same for columns. Returns `None` for an empty image.
    fn bounds(&self) -> Option<[(usize, usize); 2]> {
        let black = (0..self.ink.len()).filter(|&pixel| self.ink[pixel] >= BLACK);
        let range = |of: fn(usize, usize) -> usize| {
            let positions = || black.clone().map(|pixel| of(pixel, self.side));
            Some((positions().min()?, positions().max()?))
        };
        Some([range(|pixel, side| pixel / side)?, range(|pixel, side| pixel % side)?])
    }
}

/// Returns the features of a drawing, from 0 to 1: the shares of black pixels in a grid of 8 x 8 squares, row by row. The drawing is scaled
/// until it fills 32 pixels in its longer direction, and centred, so its place and size do not matter.
///
/// `ink` contains the ink of each pixel of a square image, from 0 (paper) to 255, row by row. Returns `None` if nothing is drawn, or if the
/// image is not square.
pub fn features(ink: &[u8]) -> Option<[f32; SQUARES]> {
    let side = ink.len().isqrt();
    let image = Some(Image { ink, side }).filter(|_| side * side == ink.len())?;
    let bounds = image.bounds()?;
    let extent = bounds.map(|(first, last)| last - first + 1).into_iter().max()? as f32;
    let scale = extent / (SIDE * CELL) as f32;
    // The corner of the square that contains the drawing in its centre.
    let [top, left] = bounds.map(|(first, last)| (first + last + 1) as f32 / 2.0 - extent / 2.0);
    let source = |corner: f32, pixel: usize| (corner + (pixel as f32 + 0.5) * scale).floor() as isize;
    let mut shares = [0.0; SQUARES];
    for row in 0..SIDE * CELL {
        for column in 0..SIDE * CELL {
            if image.is_black(source(top, row), source(left, column)) {
                shares[row / CELL * SIDE + column / CELL] += 1.0 / (CELL * CELL) as f32;
            }
        }
    }
    Some(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an image of `side` x `side` pixels with a black rectangle.
    fn rectangle(side: usize, rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> Vec<u8> {
        let ink = |pixel| rows.contains(&(pixel / side)) && columns.contains(&(pixel % side));
        (0..side * side).map(|pixel| if ink(pixel) { 255 } else { 0 }).collect()
    }

    #[test]
    fn a_bar_is_scaled_to_the_whole_height_and_centred() {
        let shares = features(&rectangle(100, 10..74, 50..66)).unwrap();
        // The bar is scaled from 64 x 16 to 32 x 8 pixels. A square has 4 x 4 pixels, so the bar fills two squares of each row.
        for row in shares.chunks(SIDE) {
            assert_eq!(row, [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        }
    }

    #[test]
    fn place_and_size_do_not_matter() {
        let corner = |side, at: usize, scale: usize| {
            let mut ink = rectangle(side, at..at + 32 * scale, at..at + 8 * scale);
            let foot = rectangle(side, at + 24 * scale..at + 32 * scale, at..at + 32 * scale);
            ink.iter_mut().zip(foot).for_each(|(ink, foot)| *ink |= foot);
            features(&ink).unwrap()
        };
        let expected = corner(32, 0, 1);
        assert_eq!(expected.iter().sum::<f32>(), 28.0);
        for (side, at, scale) in [(64, 0, 1), (64, 31, 1), (200, 7, 3), (280, 150, 4)] {
            assert_eq!(corner(side, at, scale), expected, "{side} {at} {scale}");
        }
    }

    #[test]
    fn nothing_to_read_is_none() {
        assert_eq!(features(&[]), None);
        assert_eq!(features(&[0; 64]), None);
        assert_eq!(features(&[BLACK - 1; 64]), None);
        assert_eq!(features(&[255; 63]), None);
        assert_eq!(features(&[255]), Some([1.0; SQUARES]));
    }
}
