//! Opens a filter in a file of any format. Commands query the filter in place, change the filter in
//! memory, and replace the file atomically.

use std::io;
use std::path::{Path, PathBuf};

use tamis::{BitView, HashFunction};
use tamis_formats::{
    Contents, DecodeError, DecodeErrorKind, DecodeOptions, EncodeError, Format, Funnel, ReadError,
    TamisFile,
};

use crate::arguments::decode_options::{funnel, missing_to_write};
use crate::arguments::numbers::Rate;
use crate::clock::now_millis;
use crate::exit::Failure;
use crate::filters::metadata::expect_same_items;
use crate::filters::redis_key::upload;
use crate::filters::redis_url::{self, is_url};
use crate::io::file_bytes::{Bytes, FileContent, LoadedFile};
use crate::io::input;
use crate::io::map::Mapped;
use crate::io::output::{self, Output, is_same_file};
use crate::records::column_name::ColumnName;
use crate::records::column_text::ColumnItems;
use crate::records::items::ItemEncoding;
use crate::records::key::KeyRule;

/// A filter of any format, read from a file.
pub struct OpenFilter {
    /// The path of the file.
    pub path: PathBuf,
    /// The path as the user typed the path.
    pub name: String,
    /// The format of the file.
    pub format: &'static Format,
    /// The filter.
    pub contents: FilterContents,
    /// The decode options that the user gave.
    pub options: DecodeOptions,
    /// The funnel of the items, if the user or the file states the funnel.
    pub funnel: Option<Funnel>,
    /// The name of the column, if the file is a table.
    pub column_name: Option<ColumnName>,
    /// The items of the column, if the file is a table. The user may state an item type that
    /// differs from the type of the column.
    pub column: Option<ColumnItems>,
    /// The uncompressed size of the file.
    pub len_bytes: u64,
    /// True if the file contains only this filter, so that the command may replace the file.
    pub is_whole_file: bool,
    /// True if the file is compressed.
    pub is_packed: bool,
    /// True if the format is a guess: a file of another format may by chance contain the bytes that
    /// identify this format.
    pub is_guess: bool,
}

/// The bits of a filter.
pub enum FilterContents {
    /// A mapped Tamis file, whose words are used in place.
    Mapped(Mapped),
    /// A decoded copy of a file of any format.
    Decoded(Contents),
}

/// A row group without a filter of the column. A row group without a filter may contain any item.
pub struct NoFilter {
    /// The name of the row group and the column.
    pub name: String,
}

impl NoFilter {
    /// Returns the failure of a command that needs the filter. `consequence` is the end of the
    /// message.
    pub fn failure(&self, consequence: &str) -> Failure {
        Failure::new(format!("{}: has no filter{consequence}", self.name))
    }
}

/// How a mapped filter is verified before its words are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Verify the checksums. The verification reads the file once and finds every flipped bit.
    Verify,
    /// Skip the verification, because the words were verified before, or because the command copies
    /// the words and verifies the copy.
    Assume,
}

impl OpenFilter {
    /// Opens a Tamis file. A mapped file is not copied.
    ///
    /// # Errors
    ///
    /// A message if the bytes are not a complete Tamis filter.
    pub fn tamis(path: &Path, file: LoadedFile, trust: Trust) -> Result<Self, Failure> {
        let (name, is_packed) = (input::name(path), file.is_packed);
        let failure = |error: DecodeError| Failure::new(format!("{name}: {error}"));
        let (contents, len_bytes) = match file.content {
            FileContent::Tamis(file) => {
                let len_bytes = file.len_bytes();
                (FilterContents::Decoded(Contents::new(*file)), len_bytes)
            }
            FileContent::Bytes(bytes) => {
                let len_bytes = bytes.len() as u64;
                let decode = |bytes: &[u8]| {
                    let file = TamisFile::decode(bytes).map_err(failure)?;
                    Ok(FilterContents::Decoded(Contents::new(file)))
                };
                let contents = match bytes {
                    Bytes::Copied(bytes) => decode(&bytes)?,
                    Bytes::Mapped(bytes) => match TamisFile::view(&bytes) {
                        Ok(_) => {
                            if trust == Trust::Verify {
                                TamisFile::verify(&bytes).map_err(failure)?;
                            }
                            FilterContents::Mapped(bytes)
                        }
                        Err(error) if error.kind == DecodeErrorKind::NotInPlace => decode(&bytes)?,
                        Err(error) => return Err(failure(error)),
                    },
                };
                (contents, len_bytes)
            }
        };
        Ok(Self { len_bytes, is_packed, ..Self::new(path, contents) })
    }

    /// Creates an `OpenFilter` of the format `tamis` from `contents`. `path` is the file from which
    /// `contents` was read, or the file to which the command will write `contents`.
    pub fn new(path: &Path, contents: FilterContents) -> Self {
        Self {
            path: path.to_path_buf(),
            name: input::name(path),
            format: Format::named("tamis").expect("the first row"),
            contents,
            options: DecodeOptions::default(),
            funnel: None,
            column_name: None,
            column: None,
            len_bytes: 0,
            is_whole_file: true,
            is_packed: false,
            is_guess: false,
        }
    }

    /// Copies a mapped filter into memory, so that the command can change it.
    ///
    /// # Errors
    ///
    /// A message for a damaged filter that was opened with [`Trust::Assume`].
    pub fn into_decoded(self) -> Result<Self, Failure> {
        let FilterContents::Mapped(bytes) = &self.contents else { return Ok(self) };
        let file = TamisFile::read_from(&bytes[..], u64::MAX).map_err(|error| match error {
            ReadError::Io(error) => Failure::io(&self.name, &error),
            ReadError::Decode(error) => Failure::new(format!("{}: {error}", self.name)),
        })?;
        Ok(Self { contents: FilterContents::Decoded(Contents::new(file)), ..self })
    }

    /// Returns the decoded filter.
    ///
    /// # Panics
    ///
    /// Panics if the filter is mapped. [`into_decoded`](Self::into_decoded) copies a mapped filter.
    pub fn contents(&self) -> &Contents {
        match &self.contents {
            FilterContents::Decoded(contents) => contents,
            FilterContents::Mapped(_) => panic!("{}: is not decoded", self.name),
        }
    }

    /// Returns the decoded filter as mutable.
    ///
    /// # Panics
    ///
    /// Panics if the filter is mapped. [`into_decoded`](Self::into_decoded) copies a mapped filter.
    pub fn contents_mut(&mut self) -> &mut Contents {
        match &mut self.contents {
            FilterContents::Decoded(contents) => contents,
            FilterContents::Mapped(_) => panic!("{}: is not decoded", self.name),
        }
    }

    /// Returns the decoded filter as mutable, if the filter is a Tamis filter.
    ///
    /// # Panics
    ///
    /// Panics if the filter is mapped. [`into_decoded`](Self::into_decoded) copies a mapped filter.
    pub fn tamis_mut(&mut self) -> Option<&mut TamisFile> {
        self.contents_mut().downcast_mut()
    }

    /// Returns a view of the filter at the current time, or `None` if the filter is not a Tamis
    /// filter. The method does not copy the words of the filter.
    ///
    /// # Errors
    ///
    /// An error that opening the filter would also return.
    pub fn view(&self) -> Result<Option<TamisFile<BitView<'_>>>, Failure> {
        let mut view = match &self.contents {
            FilterContents::Mapped(bytes) => TamisFile::view(bytes)
                .map_err(|error| Failure::new(format!("{}: {error}", self.name)))?,
            FilterContents::Decoded(contents) => {
                let Some(file) = contents.downcast_ref::<TamisFile>() else { return Ok(None) };
                let filter = file.filter.as_view().expect("a filter that was read has not grown");
                TamisFile { filter, added: file.added, metadata: file.metadata.clone() }
            }
        };
        view.filter.advance(now_millis());
        Ok(Some(view))
    }

    /// Checks that the file was not modified since it was opened. After a modification, the read
    /// bytes may be a mixture of the old filter and the new filter.
    ///
    /// # Errors
    ///
    /// A message if the file was modified.
    pub fn check_unchanged(&self) -> Result<(), Failure> {
        match &self.contents {
            FilterContents::Mapped(bytes) => bytes.check_unchanged(&self.name),
            FilterContents::Decoded(_) => Ok(()),
        }
    }

    /// Returns the funnel of the items.
    ///
    /// # Errors
    ///
    /// A message if neither the file nor the user states the funnel.
    pub fn funnel(&self) -> Result<Funnel, Failure> {
        funnel(self.format, self.funnel, "--funnel", &self.name)
    }

    /// Returns the encoding of the items that `rule` extracts.
    ///
    /// # Errors
    ///
    /// A message if the filter contains items of another type, or if neither the file nor the user
    /// states the funnel.
    pub fn encoding(&self, rule: &KeyRule) -> Result<ItemEncoding, Failure> {
        match self.contents().downcast_ref::<TamisFile>() {
            Some(file) => {
                expect_same_items(&file.metadata, rule, &self.name)?;
                Ok(ItemEncoding::Hash(file.filter.hasher()))
            }
            None => self.key_encoding(),
        }
    }

    /// Returns the encoding of items for a filter of another system.
    ///
    /// # Errors
    ///
    /// The errors of [`funnel`](Self::funnel).
    pub fn key_encoding(&self) -> Result<ItemEncoding, Failure> {
        match &self.column {
            Some(column) => Ok(ItemEncoding::Column(column.text, column.funnel)),
            None => self.funnel().map(ItemEncoding::Key),
        }
    }

    /// Rejects a compressed file for a change in place, because the command would replace the file
    /// by an uncompressed file of the same name.
    ///
    /// # Errors
    ///
    /// A message if the file is compressed.
    pub fn check_unpacked(&self) -> Result<(), Failure> {
        if !self.is_packed {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{}: is compressed, and would be replaced by an uncompressed file of that name: \
             decompress it first (gunzip, unzstd), and change that file",
            self.name
        )))
    }

    /// Checks that the command may write to `output`. A command may replace the source file only if
    /// the source file contains only this filter, and the format of the source file is not a guess.
    ///
    /// # Errors
    ///
    /// A message if `output` is the source file and must not be replaced.
    pub fn check_output(&self, output: &Path) -> Result<(), Failure> {
        if self.is_whole_file && !self.is_guess || !is_same_file(&self.path, output) {
            return Ok(());
        }
        let format = self.format.name;
        if self.is_guess {
            return Err(Failure::new(format!(
                "{}: looks like {format}, but has no magic number that proves it: if it is, \
                 change it with --format {format}",
                self.name
            )));
        }
        Err(Failure::new(format!(
            "{}: the file holds more than this filter: copy the filter to a separate file with \
             'tamis convert --to {format}', and change the copy",
            self.name
        )))
    }

    /// Replaces `path` by the filter in `format`, after the new file is complete and synced to the
    /// disk.
    ///
    /// Only the owner may read a filter with a secret key, unless the old file had other
    /// permissions.
    ///
    /// # Errors
    ///
    /// A message if the format cannot store the filter, or if the disk is full. After an error, the
    /// old file is unchanged.
    pub fn save_as(
        &self,
        path: &Path,
        format: &Format,
        options: &DecodeOptions,
    ) -> Result<(), Failure> {
        if is_url(path) {
            let url = redis_url::parse(path)?;
            // If the options contain a key, the encoder of Redisson also writes the settings of the
            // filter. If the options contain a key, the encoder of RedisBloom writes commands.
            // Therefore, only the encoder of Redisson gets the key.
            let key = (format.name == "redisson").then(|| url.key.clone());
            let mut bytes = Vec::new();
            self.write(&mut bytes, path, format, &DecodeOptions { key, ..options.clone() })?;
            return upload(url, format, &bytes);
        }
        let contents = self.contents();
        let is_secret = match contents.downcast_ref::<TamisFile>() {
            Some(file) => file.filter.hasher().function() == HashFunction::Sip13,
            None => contents.server_image().is_some(),
        };
        let mut output =
            if is_secret { Output::open_private(path)? } else { Output::open(Some(path))? };
        self.write(&mut output, path, format, options)?;
        output.finish()
    }

    /// Writes the filter to `out`. Messages name `path`, the final name of the file.
    ///
    /// # Errors
    ///
    /// A message if the format cannot store the filter, or the error of `out`.
    pub fn write(
        &self,
        out: &mut dyn io::Write,
        path: &Path,
        format: &Format,
        options: &DecodeOptions,
    ) -> Result<(), Failure> {
        (format.encode)(self.contents(), options, out)
            .map_err(|error| self.not_written(error, path, format, options))
    }

    /// Returns the failure to write the filter to `path` in `format`.
    pub fn not_written(
        &self,
        error: EncodeError,
        path: &Path,
        format: &Format,
        options: &DecodeOptions,
    ) -> Failure {
        let (name, to) = (&self.name, format.name);
        match error {
            EncodeError::Missing(parameter) => {
                missing_to_write(parameter, options, format, &output::name(path))
            }
            EncodeError::Several { filters, rate } => Failure::new(format!(
                "{name}: {to} holds one filter, and this file has {filters}: joined, their rate is \
                 {}; accept it with --union, or build one filter from the items with --items FILE",
                Rate(rate)
            )),
            EncodeError::NeedsItems(why) => {
                Failure::new(format!("{name}: {why}: build one from the items, with --items FILE"))
            }
            EncodeError::Io(error) => Failure::io(output::name(path), &error),
            error => Failure::new(format!("{name}: {error}")),
        }
    }
}
