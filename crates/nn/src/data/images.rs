//! Folders of images, a folder for each class. Images are decoded by the crate `image`, when their batch is made.

use std::ffi::OsStr;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use image::imageops::FilterType;
use image::{DynamicImage, Limits};
use wengert_tensor::ops::Views as _;
use wengert_tensor::{Generator, Tensor, ops::try_stack};

use crate::data::dataset::Dataset;
use crate::data::source::unreadable;
use crate::data::split;
use crate::error::Place;
use crate::file::open_regular;
use crate::{Error, Result};

/// The largest width and height of an image; with it goes the crate's limit of 512 MiB for its pixels.
const LARGEST: u32 = 1 << 14;

/// The images (`.png`, `.jpg`, `.jpeg`) of a folder's folders, whose names are the classes: `cats/tom.png`, `dogs/rex.jpg`. Images are
/// read when their batch is made: a loader's `prefetch` does that on a thread. torchvision: `ImageFolder`.
///
/// ```no_run
/// use wengert_nn::{DataLoader, Dataset, Generator, ImageFolder};
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
    /// The images of the folders in `folder`. Classes and files are in the order of their names; other files, and what begins with a dot,
    /// are no images.
    ///
    /// # Errors
    ///
    /// If the folder or one in it cannot be read, or one has no images: [`Error::Read`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let (mut files, mut classes) = (Vec::new(), Vec::new());
        for class in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
            let images: Vec<PathBuf> = entries(&class)?.into_iter().filter(|path| is_image(path)).collect();
            if images.is_empty() {
                return Err(unreadable(&class, std::io::Error::other("it has no images (.png, .jpg, .jpeg)")));
            }
            files.extend(images.into_iter().map(|image| (image, classes.len() as i64)));
            classes.push(class.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
        if classes.is_empty() {
            return Err(unreadable(folder, std::io::Error::other("it has no folders, of which each would be a class")));
        }
        Ok(ImageFolder { files, classes, reader: ImageReader::new() })
    }

    /// As [`ImageReader::grayscale`].
    #[must_use]
    pub fn grayscale(self) -> Self {
        ImageFolder { reader: self.reader.grayscale(), ..self }
    }

    /// As [`ImageReader::resize`]. Without this the images of a batch have to be of one size.
    ///
    /// # Panics
    ///
    /// If a size is 0.
    #[must_use]
    #[track_caller]
    pub fn resize(self, size: [usize; 2]) -> Self {
        ImageFolder { reader: self.reader.resize(size), ..self }
    }

    /// The names of the classes, in the order of their numbers.
    pub fn classes(&self) -> Vec<&str> {
        self.classes.iter().map(String::as_str).collect()
    }

    /// The files with their classes.
    pub fn files(&self) -> &[(PathBuf, i64)] {
        &self.files
    }

    /// The classes, `[n]`, for a stratified split.
    pub fn targets(&self) -> Tensor<i64> {
        Tensor::from(self.files.iter().map(|(_, class)| *class).collect::<Vec<_>>())
    }

    /// [`random_split`](Dataset::random_split) with the classes in the same proportion in both parts; see
    /// [`split::stratified`].
    ///
    /// # Errors
    ///
    /// As for `random_split`, and if a class has a single image.
    pub fn stratified_split(&self, held_out: f64, generator: &mut Generator) -> Result<(Self, Self)> {
        let (rest, part) = split::stratified(&self.targets(), held_out, generator)?;
        Ok((self.subset(&rest)?, self.subset(&part)?))
    }
}

/// Images `[n, 3, height, width]` (`[n, 1, …]` in gray) with numbers from 0 to 1, and their classes `[n]`.
impl Dataset for ImageFolder {
    type Batch = (Tensor<f32>, Tensor<i64>);

    fn len(&self) -> usize {
        self.files.len()
    }

    /// # Errors
    ///
    /// If a file is unreadable or no regular file ([`Error::Read`]), no image, or larger than 16384 pixels or 512 MiB
    /// ([`Error::Malformed`]), or of another size than the first of the batch.
    fn batch(&self, indices: &[usize]) -> Result<Self::Batch> {
        let chosen = self.subset(indices)?;
        let mut images: Vec<Tensor<f32>> = Vec::with_capacity(indices.len());
        for (path, _) in &chosen.files {
            let image = self.reader.read(path)?;
            if let Some(first) = images.first().filter(|first| first.shape() != image.shape()) {
                let (first, found) = (first.shape(), image.shape());
                let problem = format!("the image is of shape {found}, the first of its batch of {first} (`resize`)");
                return Err(Error::Malformed { path: path.clone(), place: Place::Byte(0), problem });
            }
            images.push(image);
        }
        Ok((try_stack(&images, 0)?, chosen.targets()))
    }

    fn subset(&self, indices: &[usize]) -> Result<Self> {
        let n = self.files.len();
        let file = |&index: &usize| {
            let file = self.files.get(index).cloned();
            file.ok_or_else(|| Error::Dataset(format!("sample {index} of a data set that has {n}")))
        };
        Ok(ImageFolder { files: indices.iter().map(file).collect::<Result<_>>()?, ..self.clone() })
    }
}

/// How images are read: in colour or gray, and how large. A trained model is to be used on images that are read as those of its training
/// were.
///
/// ```no_run
/// use wengert_nn::ImageReader;
/// use wengert_tensor::prelude::*;
///
/// let image = ImageReader::new().resize([64, 64]).read("rex.jpg")?; // [3, 64, 64], from 0 to 1
/// let batch = image.unsqueeze(0); // [1, 3, 64, 64], as models want it
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageReader {
    grayscale: bool,
    size: Option<[usize; 2]>,
}

impl ImageReader {
    /// Red, green and blue, in the image's own size.
    pub fn new() -> Self {
        ImageReader::default()
    }

    /// One channel of brightness in place of red, green and blue.
    #[must_use]
    pub fn grayscale(self) -> Self {
        ImageReader { grayscale: true, ..self }
    }

    /// Images made as large as `[height, width]`, whatever their proportions, with linear interpolation.
    ///
    /// # Panics
    ///
    /// If a size is 0.
    #[must_use]
    #[track_caller]
    pub fn resize(self, size: [usize; 2]) -> Self {
        assert!(!size.contains(&0), "resize: expected a height and a width of 1 or more, got {size:?}");
        ImageReader { size: Some(size), ..self }
    }

    /// The image in a file, `[3, height, width]` (`[1, …]` in gray), with numbers from 0 to 1. A gray image has three equal channels in
    /// colour; transparency is left out. torchvision: `decode_image`.
    ///
    /// # Errors
    ///
    /// If the file is unreadable or no regular file ([`Error::Read`]), no image, or larger than 16384 pixels or 512 MiB
    /// ([`Error::Malformed`]).
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Tensor<f32>> {
        let image = decode(path.as_ref())?;
        let image = match self.size {
            Some([height, width]) => image.resize_exact(width as u32, height as u32, FilterType::Triangle),
            None => image,
        };
        let (width, height) = (image.width() as usize, image.height() as usize);
        let (bytes, channels) =
            if self.grayscale { (image.to_luma8().into_raw(), 1) } else { (image.to_rgb8().into_raw(), 3) };
        let values = bytes.into_iter().map(|byte| f32::from(byte) / 255.0).collect();
        Ok(Tensor::try_from_vec(values, [height, width, channels])?.try_permute([2, 0, 1])?.try_contiguous()?)
    }
}

fn decode(path: &Path) -> Result<DynamicImage> {
    let file = BufReader::new(open_regular(path)?.0);
    let mut reader = image::ImageReader::new(file).with_guessed_format().map_err(|source| unreadable(path, source))?;
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(LARGEST), Some(LARGEST));
    reader.limits(limits);
    reader.decode().map_err(|error| {
        let (place, problem) = (Place::Byte(0), format!("expected an image: {error}"));
        Error::Malformed { path: path.to_owned(), place, problem }
    })
}

/// What is in a folder, in the order of the names, without what begins with a dot.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        paths.retain(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")));
        paths.sort();
        Ok(paths)
    };
    read().map_err(|source| unreadable(folder, source))
}

fn is_image(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
    matches!(extension.as_deref(), Some("png" | "jpg" | "jpeg"))
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};

    use super::*;

    /// Two classes: of the first two images of 2 x 3 (height, width), of the second one.
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
    fn a_folder_is_a_class() {
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
        // What is read alone is what the folder has.
        let alone = ImageReader::new().grayscale().resize([4, 5]).read(folder.path().join("cats/a.png")).unwrap();
        assert_eq!(alone, small.squeeze(0));
        // A gray image among those in colour.
        image::GrayImage::from_pixel(3, 2, image::Luma([102])).save(folder.path().join("dogs/d.png")).unwrap();
        let images = ImageFolder::open(&folder).unwrap();
        assert_eq!(images.batch(&[0, 3]).unwrap().0.select(0, 1), Tensor::full([3, 2, 3], 0.4));
        let (rest, part) = images.stratified_split(0.5, &mut Generator::new(0)).unwrap();
        assert_eq!((rest.targets(), part.targets()), (Tensor::from([0, 1]), Tensor::from([0, 1])));
    }

    #[test]
    #[should_panic(expected = "resize: expected a height and a width of 1 or more, got [0, 4]")]
    fn images_of_no_size_are_refused() {
        let _ = ImageReader::new().resize([0, 4]);
    }

    #[test]
    fn bad_files_and_folders_are_named() {
        let folder = folder();
        let path = folder.path().join("cats/a.png");
        let whole = fs::read(&path).unwrap();
        let refusal = |contents: &[u8]| {
            fs::write(&path, contents).unwrap();
            let error = ImageFolder::open(&folder).unwrap().batch(&[0, 1]).unwrap_err().to_string();
            error.replace(path.to_str().unwrap(), "a.png")
        };
        for contents in [&b""[..], b"not an image", &whole[..20], &whole[..whole.len() / 2]] {
            let text = refusal(contents);
            assert!(text.starts_with("'a.png', byte 0: expected an image: ") && !text.contains('\n'), "{text}");
        }
        // A header that promises 2³⁰ x 2³⁰ pixels.
        let mut hostile = whole.clone();
        hostile[16..24].copy_from_slice(&[0x40, 0, 0, 0, 0x40, 0, 0, 0]);
        assert!(refusal(&hostile).starts_with("'a.png', byte 0: expected an image: "));
        RgbImage::new(4, 4).save(&path).unwrap();
        let text = ImageFolder::open(&folder).unwrap().batch(&[1, 0]).unwrap_err().to_string();
        assert!(
            text.ends_with("the image is of shape [3, 4, 4], the first of its batch of [3, 2, 3] (`resize`)"),
            "{text}"
        );
        fs::create_dir(folder.path().join("fish")).unwrap();
        let text = ImageFolder::open(&folder).unwrap_err().to_string();
        assert!(text.ends_with("fish': it has no images (.png, .jpg, .jpeg)"), "{text}");
        let text = ImageFolder::open(folder.path().join("cats")).unwrap_err().to_string();
        assert!(text.ends_with("it has no folders, of which each would be a class"), "{text}");
        assert!(ImageFolder::open("no/such/folder").is_err());
    }
}
