//! Images in folders, with one folder for each class. The crate `image` decodes them when their batch is made.

use std::ffi::OsStr;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder as _, ImageError, Limits};
use wengert_tensor::{Generator, Tensor, ops::try_stack};

use crate::data::dataset::Dataset;
use crate::data::samples::Samples;
use crate::data::source::unreadable;
use crate::data::split::{self, HeldOut};
use crate::error::Place;
use crate::file::open_regular;
use crate::{Error, Result};

/// The largest number of pixels by default: 2²⁶, for example 8192 x 8192. Most photos have fewer pixels. A file of a few kilobytes may
/// claim more; 2²⁶ pixels need up to 1.5 GiB while they are read.
const DEFAULT_MAX_PIXELS: u64 = 1 << 26;

/// The largest number of bytes of a decoded pixel: four channels of 32 bits.
const MAX_BYTES_PER_PIXEL: u64 = 16;

/// A data set of images (`.png`, `.jpg`, `.jpeg`) in subfolders, whose names are the classes: `cats/tom.png`,
/// `dogs/rex.jpg`. torchvision: `ImageFolder`.
///
/// Images are read when their batch is made; [`DataLoader::prefetch`](crate::DataLoader::prefetch) does this on another
/// thread. [`to_samples`](Self::to_samples) reads all images once.
///
/// ```no_run
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::{DataLoader, Dataset, Generator, ImageFolder};
///
/// let images = ImageFolder::open("pets")?.resize([64, 64]);
/// println!("classes: {:?}", images.classes());
/// let (train, test) = images.random_split(0.2, &mut Generator::new(0))?;
/// for batch in DataLoader::new(train, 32).shuffle().prefetch(2).epoch(0) {
///     let (pixels, classes) = batch?; // [32, 3, 64, 64], from 0 to 1; [32]
/// }
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ImageFolder {
    files: Vec<(PathBuf, i64)>,
    classes: Vec<String>,
    reader: ImageReader,
}

impl ImageFolder {
    /// Lists the images in the subfolders of `folder`. Classes and files are in the order of their names. Files of
    /// other types, and files and folders whose name begins with a dot, are ignored.
    ///
    /// # Errors
    ///
    /// If a folder cannot be read, `folder` has no subfolders, or a subfolder has no images: [`Error::Read`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        ImageFolder::from_folder(folder.as_ref())
    }

    fn from_folder(folder: &Path) -> Result<Self> {
        let (mut files, mut classes) = (Vec::new(), Vec::new());
        for class in list_entries(folder)?.into_iter().filter(|path| path.is_dir()) {
            let images: Vec<PathBuf> = list_entries(&class)?.into_iter().filter(|path| is_image(path)).collect();
            if images.is_empty() {
                return Err(unreadable(&class, std::io::Error::other(no_images_message(&class))));
            }
            files.extend(images.into_iter().map(|image| (image, classes.len() as i64)));
            classes.push(class.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
        if classes.is_empty() {
            return Err(unreadable(folder, std::io::Error::other("it has no subfolders; expected one for each class")));
        }
        Ok(ImageFolder { files, classes, reader: ImageReader::new() })
    }

    /// Reads images in gray; see [`ImageReader::grayscale`].
    #[must_use]
    pub fn grayscale(self) -> Self {
        ImageFolder { reader: self.reader.grayscale(), ..self }
    }

    /// Resizes images; see [`ImageReader::resize`]. Without it, all images of a batch must have the same size.
    ///
    /// # Panics
    ///
    /// If a size is 0 or above 2³² - 1.
    #[must_use]
    #[track_caller]
    pub fn resize(self, size: [usize; 2]) -> Self {
        ImageFolder { reader: self.reader.resize(size), ..self }
    }

    /// Sets the largest number of pixels of an image; see [`ImageReader::max_pixels`].
    #[must_use]
    pub fn max_pixels(self, pixels: u64) -> Self {
        ImageFolder { reader: self.reader.max_pixels(pixels), ..self }
    }

    /// Returns the names of the classes, in the order of the class indices.
    pub fn classes(&self) -> Vec<&str> {
        self.classes.iter().map(String::as_str).collect()
    }

    /// Returns the image files, each with the index of its class.
    pub fn files(&self) -> &[(PathBuf, i64)] {
        &self.files
    }

    /// Returns the class index of each image, `[n]`, for example for a stratified split.
    pub fn targets(&self) -> Tensor<i64> {
        Tensor::from(self.files.iter().map(|(_, class)| *class).collect::<Vec<_>>())
    }

    /// Splits at random like [`random_split`](Dataset::random_split), with the classes in nearly the same proportion in both parts; see
    /// [`split::stratified`].
    ///
    /// # Errors
    ///
    /// As for `random_split`. Also if a class has a single image.
    pub fn stratified_split(&self, held_out: impl Into<HeldOut>, generator: &mut Generator) -> Result<(Self, Self)> {
        let (rest, part) = split::stratified(&self.targets(), held_out, generator)?;
        Ok((self.subset(&rest)?, self.subset(&part)?))
    }

    /// Reads all images, and returns them with their classes as a data set in memory. A training run of several epochs then decodes each file
    /// once instead of once in each epoch. Reading needs twice the memory of the pixels, which have four bytes for each channel.
    ///
    /// ```no_run
    /// # mod wengert { pub use wengert_nn as nn; }
    /// use wengert::nn::{DataLoader, ImageFolder};
    ///
    /// let images = ImageFolder::open("pets")?.resize([64, 64]);
    /// let batches = DataLoader::new(images.to_samples()?, 32).shuffle();
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`batch`](Dataset::batch). All images must have the same size.
    pub fn to_samples(&self) -> Result<Samples> {
        let (images, classes) = self.batch(&(0..self.len()).collect::<Vec<_>>())?;
        Samples::new(images, classes)
    }
}

/// Returns the message for a class folder without images. If the class folder has subfolders, the message suggests opening the class folder
/// as the data set.
fn no_images_message(class: &Path) -> String {
    let has_folders = list_entries(class).is_ok_and(|paths| paths.iter().any(|path| path.is_dir()));
    let hint = if has_folders { ", but subfolders: if they are the classes, open this folder" } else { "" };
    format!("it has no images (.png, .jpg, .jpeg){hint}")
}

/// A batch has images `[n, 3, height, width]`, or `[n, 1, height, width]` in gray, with values from 0 to 1, and their classes `[n]`. A
/// batch without images has the same number of channels and the size of [`resize`](ImageFolder::resize), or a height and width of 0 without
/// it.
impl Dataset for ImageFolder {
    type Batch = (Tensor<f32>, Tensor<i64>);

    fn len(&self) -> usize {
        self.files.len()
    }

    /// # Errors
    ///
    /// - An index is out of range: [`Error::Dataset`].
    /// - A file is unreadable or not a regular file: [`Error::Read`].
    /// - A file is not an image, has more pixels than [`max_pixels`](ImageFolder::max_pixels), or has another size than
    ///   the first image of the batch: [`Error::Malformed`].
    /// - There is not enough memory.
    fn batch(&self, indices: &[usize]) -> Result<Self::Batch> {
        let selection = self.subset(indices)?;
        let mut images: Vec<Tensor<f32>> = Vec::with_capacity(indices.len());
        for (path, _) in &selection.files {
            let image = self.reader.read(path)?;
            if let Some(first) = images.first().filter(|first| first.shape() != image.shape()) {
                let (first, found) = (first.shape(), image.shape());
                let problem =
                    format!("the image has shape {found}, but the first of its batch has {first}: use `resize`");
                return Err(Error::Malformed { path: path.clone(), place: Place::Byte(0), problem });
            }
            images.push(image);
        }
        let images = if images.is_empty() {
            let ([height, width], channels) = (self.reader.size.unwrap_or_default(), self.reader.channels());
            Tensor::try_full([0, channels, height, width], 0.0)?
        } else {
            try_stack(&images, 0)?
        };
        Ok((images, selection.targets()))
    }

    fn subset(&self, indices: &[usize]) -> Result<Self> {
        let n = self.files.len();
        let file = |&index: &usize| {
            let file = self.files.get(index).cloned();
            file.ok_or_else(|| Error::Dataset(format!("there is no sample {index} in a data set of {n} samples")))
        };
        Ok(ImageFolder { files: indices.iter().map(file).collect::<Result<_>>()?, ..self.clone() })
    }
}

/// A reader of images, with settings for colour or gray and for the size. Use a trained model with the same reader as in its training.
///
/// ```no_run
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::ImageReader;
/// use wengert::prelude::*;
///
/// let image = ImageReader::new().resize([64, 64]).read("rex.jpg")?; // [3, 64, 64], from 0 to 1
/// let batch = image.unsqueeze(0); // [1, 3, 64, 64], the input of a model
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageReader {
    grayscale: bool,
    size: Option<[usize; 2]>,
    max_pixels: u64,
}

/// The same as [`ImageReader::new`].
impl Default for ImageReader {
    fn default() -> Self {
        ImageReader { grayscale: false, size: None, max_pixels: DEFAULT_MAX_PIXELS }
    }
}

impl ImageReader {
    /// Returns a reader that returns red, green and blue and does not change the size.
    pub fn new() -> Self {
        ImageReader::default()
    }

    /// Makes the reader return one channel of brightness instead of red, green and blue.
    #[must_use]
    pub fn grayscale(self) -> Self {
        ImageReader { grayscale: true, ..self }
    }

    /// Resizes images to `[height, width]` by linear interpolation. If images become smaller, this averages over pixels, like torchvision's
    /// `antialias=True`. The proportions of an image may change.
    ///
    /// # Panics
    ///
    /// If a size is 0 or above 2³² - 1.
    #[must_use]
    #[track_caller]
    pub fn resize(self, size: [usize; 2]) -> Self {
        let fits = size.iter().all(|&size| u32::try_from(size).is_ok_and(|size| size > 0));
        assert!(fits, "resize: expected a height and a width from 1 to {}, but got {size:?}", u32::MAX);
        ImageReader { size: Some(size), ..self }
    }

    /// Sets the largest number of pixels of an image, 2²⁶ (67 million) by default. Reading needs up to 24 bytes of memory
    /// for each pixel. A small file can claim many pixels, so raise the limit for files that you trust.
    #[must_use]
    pub fn max_pixels(self, pixels: u64) -> Self {
        ImageReader { max_pixels: pixels, ..self }
    }

    /// Returns the number of channels.
    fn channels(&self) -> usize {
        if self.grayscale { 1 } else { 3 }
    }

    /// Reads an image, `[3, height, width]`, or `[1, height, width]` in gray, with values from 0 to 1. A gray image gives three equal
    /// channels if the reader is set to colour. Transparency is ignored, and channels of 16 bits are reduced to 8. The rotation that a camera
    /// stores in a JPEG file (EXIF) is ignored, as in torchvision. torchvision: `decode_image`.
    ///
    /// # Errors
    ///
    /// - The file is unreadable or not a regular file: [`Error::Read`].
    /// - The file is not an image, or has more pixels than [`max_pixels`](Self::max_pixels): [`Error::Malformed`].
    /// - There is not enough memory.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Tensor<f32>> {
        self.read_file(path.as_ref())
    }

    fn read_file(&self, path: &Path) -> Result<Tensor<f32>> {
        let mut image = decode(path, self.max_pixels)?;
        if let Some([height, width]) = self.size {
            image = image.resize_exact(width as u32, height as u32, FilterType::Triangle);
        }
        let shape = [self.channels(), image.height() as usize, image.width() as usize];
        // A decoded image that is already gray or RGB with 8 bits per channel, as wanted, is not converted, so that no second copy is made.
        let bytes = match (image, self.grayscale) {
            (DynamicImage::ImageLuma8(image), true) => image.into_raw(),
            (image, true) => image.into_luma8().into_raw(),
            (image, false) => image.into_rgb8().into_raw(),
        };
        // Copies channel by channel, because the tensor has the channels first, and the image has them last.
        let mut values = Vec::new();
        values.try_reserve_exact(bytes.len()).map_err(|error| unreadable(path, error.into()))?;
        for channel in 0..self.channels() {
            values.extend(bytes[channel..].iter().step_by(self.channels()).map(|&byte| f32::from(byte) / 255.0));
        }
        Ok(Tensor::try_from_vec(values, shape)?)
    }
}

/// Decodes the image in a file. Returns an error if the file cannot be read, is not an image, or has more than `max_pixels`
/// pixels.
fn decode(path: &Path, max_pixels: u64) -> Result<DynamicImage> {
    let malformed = |problem| Error::Malformed { path: path.to_owned(), place: Place::Byte(0), problem };
    let expected = |error: ImageError| malformed(format!("expected an image: {error}"));
    let file = BufReader::new(open_regular(path)?.0);
    let mut reader = image::ImageReader::new(file).with_guessed_format().map_err(|source| unreadable(path, source))?;
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(max_pixels.saturating_mul(MAX_BYTES_PER_PIXEL));
    reader.limits(limits);
    // At this point the decoder has decoded only the header of the image.
    let decoder = reader.into_decoder().map_err(expected)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > max_pixels {
        return Err(malformed(format!(
            "the image has {width} x {height} pixels, but at most {max_pixels} pixels are read; `max_pixels` allows more"
        )));
    }
    DynamicImage::from_decoder(decoder).map_err(expected)
}

/// Returns the paths in a folder, in the order of their names, without names that begin with a dot. A folder that
/// cannot be read is an error.
fn list_entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        paths.retain(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")));
        paths.sort();
        Ok(paths)
    };
    read().map_err(|source| unreadable(folder, source))
}

/// Returns true if the file name has the extension of an image.
fn is_image(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
    matches!(extension.as_deref(), Some("png" | "jpg" | "jpeg"))
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};
    use wengert_tensor::ops::{Indexing as _, Views as _};

    use super::*;

    /// Returns a folder with two images of the first class and one of the second, all of height 2 and width 3.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, red) in [("cats/a.png", 255), ("cats/b.PNG", 51), ("dogs/c.png", 0)] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let image = RgbImage::from_fn(3, 2, |x, y| Rgb([red, 10 * x as u8, 100 * y as u8]));
            image.save_with_format(path, image::ImageFormat::Png).unwrap();
        }
        fs::write(folder.path().join("cats/readme.txt"), "").unwrap();
        fs::write(folder.path().join("notes.txt"), "").unwrap();
        fs::create_dir(folder.path().join(".cache")).unwrap();
        folder
    }

    #[test]
    fn each_subfolder_is_a_class() {
        let folder = folder();
        let images = ImageFolder::open(&folder).unwrap();
        assert_eq!((images.classes(), images.len()), (vec!["cats", "dogs"], 3));
        let (pixels, classes) = images.batch(&[2, 1]).unwrap();
        assert_eq!((pixels.shape().sizes(), classes), (&[2, 3, 2, 3][..], Tensor::from([1, 0])));
        assert_eq!(pixels.get(&[1, 0, 0, 0]), Some(0.2));
        assert_eq!(pixels.get(&[0, 1, 0, 2]), Some(20.0 / 255.0));
        assert_eq!(pixels.get(&[0, 2, 1, 0]), Some(100.0 / 255.0));
        let small = images.clone().grayscale().resize([4, 5]).batch(&[0]).unwrap().0;
        assert_eq!(small.shape().sizes(), [1, 1, 4, 5]);
        // An image that is read alone has the same values as in a batch.
        let alone = ImageReader::new().grayscale().resize([4, 5]).read(folder.path().join("cats/a.png")).unwrap();
        assert_eq!(alone, small.squeeze(0));
        // Adds a gray image to the folder of colour images.
        image::GrayImage::from_pixel(3, 2, image::Luma([102])).save(folder.path().join("dogs/d.png")).unwrap();
        let images = ImageFolder::open(&folder).unwrap();
        assert_eq!(images.batch(&[0, 3]).unwrap().0.select(0, 1), Tensor::full([3, 2, 3], 0.4));
        let (rest, part) = images.stratified_split(0.5, &mut Generator::new(0)).unwrap();
        assert_eq!((rest.targets(), part.targets()), (Tensor::from([0, 1]), Tensor::from([0, 1])));
    }

    #[test]
    fn samples_in_memory_equal_the_files() {
        let folder = folder();
        let images = ImageFolder::open(&folder).unwrap().resize([4, 5]);
        let samples = images.to_samples().unwrap();
        let (pixels, classes) = images.batch(&[0, 1, 2]).unwrap();
        assert_eq!((samples.inputs(), samples.targets()), (&pixels, &classes));
        fs::remove_file(folder.path().join("cats/a.png")).unwrap();
        assert_eq!(samples.batch(&[2, 0]).unwrap().0, pixels.index_select(0, &Tensor::from([2, 0])));
        assert!(images.to_samples().unwrap_err().to_string().contains("a.png"));
        assert_eq!(images.subset(&[]).unwrap().to_samples().unwrap().len(), 0);
    }

    #[test]
    fn a_batch_without_images_is_empty() {
        let folder = folder();
        let images = ImageFolder::open(&folder).unwrap();
        let (pixels, classes) = images.batch(&[]).unwrap();
        assert_eq!((pixels.shape().sizes(), classes.shape().sizes()), (&[0, 3, 0, 0][..], &[0][..]));
        let (pixels, _) = images.subset(&[]).unwrap().grayscale().resize([4, 5]).batch(&[]).unwrap();
        assert_eq!(pixels.shape().sizes(), [0, 1, 4, 5]);
    }

    #[test]
    fn the_limit_of_pixels_can_be_changed() {
        let folder = folder();
        let images = ImageFolder::open(&folder).unwrap();
        assert!(images.clone().max_pixels(6).batch(&[0]).is_ok());
        let text = images.max_pixels(5).batch(&[0]).unwrap_err().to_string();
        assert!(text.contains("the image has 3 x 2 pixels, but at most 5 pixels are read"), "{text}");
        // The limit counts pixels, so an image that is wide but not high is read.
        let path = folder.path().join("wide.png");
        image::GrayImage::new(1 << 15, 3).save(&path).unwrap();
        assert_eq!(ImageReader::new().grayscale().read(&path).unwrap().shape().sizes(), [1, 3, 1 << 15]);
    }

    #[test]
    fn the_rotation_that_a_camera_stores_is_ignored() {
        let folder = folder();
        let path = folder.path().join("photo.jpg");
        RgbImage::new(3, 2).save(&path).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        // Inserts an EXIF segment after the first marker. Its field 0x112, the orientation, is 6: a quarter turn.
        let fields = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let segment = [&[0xFF, 0xE1, 0, fields.len() as u8 + 2], &fields[..]].concat();
        bytes.splice(2..2, segment);
        fs::write(&path, bytes).unwrap();
        let mut decoder = image::ImageReader::open(&path).unwrap().into_decoder().unwrap();
        assert_eq!(decoder.orientation().unwrap(), image::metadata::Orientation::Rotate90);
        assert_eq!(ImageReader::new().read(&path).unwrap().shape().sizes(), [3, 2, 3]);
    }

    #[test]
    #[should_panic(expected = "resize: expected a height and a width from 1 to 4294967295, but got [0, 4]")]
    fn a_size_of_0_panics() {
        let _ = ImageReader::new().resize([0, 4]);
    }

    #[test]
    fn errors_name_files_and_folders() {
        let folder = folder();
        let path = folder.path().join("cats/a.png");
        let whole = fs::read(&path).unwrap();
        let read_error_text = |contents: &[u8]| {
            fs::write(&path, contents).unwrap();
            let error = ImageFolder::open(&folder).unwrap().batch(&[0, 1]).unwrap_err().to_string();
            error.replace(path.to_str().unwrap(), "a.png")
        };
        for contents in [&b""[..], b"not an image", &whole[..20], &whole[..whole.len() / 2]] {
            let text = read_error_text(contents);
            assert!(text.starts_with("'a.png', byte 0: expected an image: ") && !text.contains('\n'), "{text}");
        }
        // A small file may have many pixels.
        let mut wide = Vec::new();
        let pixels = image::GrayImage::new(8192, 8193);
        pixels.write_to(&mut std::io::Cursor::new(&mut wide), image::ImageFormat::Png).unwrap();
        let text = read_error_text(&wide);
        assert_eq!(
            text,
            "'a.png', byte 0: the image has 8192 x 8193 pixels, but at most 67108864 pixels are read; `max_pixels` allows more"
        );
        // The header of this file claims 2³⁰ x 2³⁰ pixels.
        let mut hostile = whole.clone();
        hostile[16..24].copy_from_slice(&[0x40, 0, 0, 0, 0x40, 0, 0, 0]);
        assert!(read_error_text(&hostile).starts_with("'a.png', byte 0: expected an image: "));
        RgbImage::new(4, 4).save(&path).unwrap();
        let text = ImageFolder::open(&folder).unwrap().batch(&[1, 0]).unwrap_err().to_string();
        assert!(
            text.ends_with("the image has shape [3, 4, 4], but the first of its batch has [3, 2, 3]: use `resize`"),
            "{text}"
        );
        fs::create_dir(folder.path().join("fish")).unwrap();
        let text = ImageFolder::open(&folder).unwrap_err().to_string();
        assert!(text.ends_with("fish': it has no images (.png, .jpg, .jpeg)"), "{text}");
        fs::create_dir(folder.path().join("fish").join("pike")).unwrap();
        let text = ImageFolder::open(&folder).unwrap_err().to_string();
        assert!(text.ends_with("but subfolders: if they are the classes, open this folder"), "{text}");
        let text = ImageFolder::open(folder.path().join("cats")).unwrap_err().to_string();
        assert!(text.ends_with("it has no subfolders; expected one for each class"), "{text}");
        assert!(ImageFolder::open("no/such/folder").is_err());
    }

    #[test]
    #[should_panic(expected = "resize: expected a height and a width from 1 to 4294967295, but got [4294967296, 4]")]
    fn an_image_of_a_size_that_no_image_has_is_refused() {
        let _ = ImageReader::new().resize([1 << 32, 4]);
    }
}
