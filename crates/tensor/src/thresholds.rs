//! Thresholds of this crate. Each comment names the unit, and many say what a larger or smaller value would cost. Other thresholds are
//! beside their code, for example the thresholds of reductions, of threads and of direct convolutions.
//!
//! The costs of functions of one and two values are beside their names in `scalar/functions.rs`. Other instructions have the cost 1 (see
//! `scalar/instruction.rs`). The unit is the cost of one addition per element.
//!
//! The values were measured on virtual machines with two cores and AVX-512 (Intel Xeon and AMD EPYC processors) in November 2026. Most
//! comments do not say on which machine a value was measured, because this was not recorded. Values that limit memory or the length of a
//! search were not tuned.

/// Thresholds of the planner, which decides which values are fused, computed again, or written directly into a larger result.
pub(crate) mod plan {
    /// The longest row, in elements, that an instruction of a fused program reduces, so that later instructions of the same pass can read
    /// the total. The values of one row must stay in the second-level cache. Also the largest tensor, in elements, that a fused program
    /// reduces even if each total has fewer than [`MIN_TERMS_PER_TOTAL`] terms.
    pub(crate) const MAX_ROW: usize = 1 << 14;

    /// The value of [`MAX_ROW`] for a tensor that is reduced to a single value. Such a tensor is a single row, whose total one thread
    /// computes.
    pub(crate) const MAX_SINGLE_ROW: usize = 1 << 12;

    /// The shortest row, in elements, that an instruction of a fused program reduces. A program that runs row by row over shorter rows costs
    /// more than a second pass. Shorter rows are allowed if there are at most [`FEW_ROWS`] rows, or if the reduced value is computed only
    /// from expanded operands.
    pub(crate) const MIN_ROW: usize = 16;

    /// The number of rows up to which an instruction reduces rows shorter than [`MIN_ROW`] too.
    pub(crate) const FEW_ROWS: usize = 4;

    /// The smallest number of terms per total of a reduction that is a part of a fused program. Each task of the program keeps its own copy
    /// of all totals. With fewer terms per total, the reduction is a separate step, unless the reduced tensor has at most [`MAX_ROW`]
    /// elements.
    pub(crate) const MIN_TERMS_PER_TOTAL: usize = 16;

    /// The largest number of values that the planner visits when it tests whether a value is computed only from expanded operands. These
    /// operands have fewer elements than the value.
    pub(crate) const MAX_SEARCHED_VALUES: usize = 64;

    /// The largest number of rows of each product for which several products share one row-major copy of their common transposed right
    /// matrix. Without the copy, each product would rearrange the matrix itself. For few rows, this takes a considerable part of a
    /// product's time.
    pub(crate) const FEW_PRODUCT_ROWS: usize = 64;

    /// A cost in additions per element. If computing a value from operands in memory has at most this cost, each kernel that reads the value
    /// computes it again. Writing the value and reading it back would take longer. This does not apply to values that must be stored anyway.
    pub(crate) const MAX_RECOMPUTED_COST: usize = 7;

    /// The largest cost, in additions per element, of computing a value again in all kernels that read it. Storing a value with more
    /// readers takes less time. A write to main memory takes about as long as ten additions.
    pub(crate) const MAX_RECOMPUTED_TOTAL: usize = 32;

    /// The smallest concatenation, in elements, whose operands are written directly into its memory. For a smaller concatenation, planning
    /// takes longer than a copy.
    pub(crate) const MIN_CONCATENATION: usize = 1 << 10;

    /// The longest row of one operand, in elements, if a program writes several operands of a concatenation side by side. A row has the
    /// dimensions from the concatenation's dimension on. The program's values for one row must stay in the second-level cache.
    pub(crate) const MAX_CONCATENATED_ROW: usize = 1 << 12;

    /// The largest number of elements in all operands of one joined product (64 MiB of f32). A joined product replaces a sum of several
    /// products. It needs copies of their operands side by side.
    pub(crate) const MAX_JOINED_PRODUCT: usize = 1 << 24;

    /// A sum of the gradients of overlapping slices is cut into parts where slices start or end, so a slice may cover several parts. If the
    /// slices cover more than this number of parts on average, two sums of half of the slices each are computed. More parts mean more steps
    /// with fewer elements each. Measured with causal attention.
    pub(crate) const MAX_PARTS_PER_SLICE: usize = 8;

    /// A slice of a sum is replaced by slices of the terms, which may be sums again. This is the largest number of slices that the planner
    /// takes so, for each value of the expression on average. Sums on top of each other, each read through several slices, would need
    /// exponentially many.
    pub(crate) const MAX_SLICED_PER_VALUE: usize = 4;

    /// The largest number of plans that a thread keeps. A training step that reads many values, each on its own, needs a plan for each of
    /// them.
    pub(crate) const MAX_PLANS: usize = 1024;

    /// The largest number of nodes in all plans that a thread keeps. An expression with more nodes is planned anew each time, which takes
    /// little time compared with its run.
    pub(crate) const MAX_PLANNED_NODES: usize = 1 << 20;

    /// The largest value, in elements, that a step of a *region* computes (views may be larger). A region is a sequence of steps that run
    /// in one block of memory (see `engine/plan/regions.rs`). With larger values, the work of a step takes longer than its start, which a
    /// region saves. Measured with 14 small models.
    pub(crate) const MAX_REGION_VALUE: usize = 1 << 12;

    /// The largest number of multiplications of a batch of products in a region. A larger product of one column may run on several threads,
    /// so it is not a step of a region.
    pub(crate) const MAX_REGION_PRODUCT: usize = super::matmul::MIN_PARALLEL_COLUMN - 1;

    /// The largest operand of a concatenation, in elements, that a step of a region may compute. It is copied from the region's memory to
    /// the concatenation. A step outside a region writes its result directly there. Measured with recurrent networks.
    pub(crate) const MAX_REGION_CONCAT_OPERAND: usize = 512;

    /// The largest number of elements in the memory of a region (a sequence of small steps), which stays in the second-level cache.
    pub(crate) const MAX_REGION_LEN: usize = 1 << 16;

    /// Equal programs of a region are stored once. This is the number of the region's last stored programs with which a new program is
    /// compared. One step of a recurrence has fewer programs. A region without equal programs may have many more.
    pub(crate) const MAX_SEARCHED_PROGRAMS: usize = 256;

    /// The smallest number of steps of a region. A shorter region saves less than the copies of its results cost.
    pub(crate) const MIN_REGION_STEPS: usize = 4;

    /// The largest number of times that a region is compiled, each time for fixed shapes and strides of its inputs. These rarely change,
    /// because the plan has fixed shapes. A region whose inputs change more often runs step by step.
    pub(crate) const MAX_REGION_COMPILATIONS: usize = 4;

    /// A new shape of an expression is compared with this number of the expression's first shapes. A new view is compared with this number of
    /// its first views. Later shapes are found by their hashes, so equal shapes are stored once. Later views are not found, so a view that
    /// equals one of them is stored again.
    pub(crate) const MAX_SCANNED: usize = 16;
}

/// Thresholds for the blocks and tasks of elementwise work. A block is the piece of a tensor that one call of a kernel processes.
pub(crate) mod blocks {
    /// The largest number of elements of most blocks. Blocks of whole rows, and of programs with a [short last dimension](super::short_axis),
    /// may be longer. Blocks of contiguous operands and of copies have up to [`TASK`] elements. With larger blocks, the operands do not stay
    /// in the first-level cache. With smaller blocks, the start of each instruction takes a larger part of the time.
    pub(crate) const BLOCK: usize = 1024;

    /// The largest number of elements of memory for intermediate values that each thread keeps between programs. Only programs over very
    /// long rows, or with very many values, need more.
    pub(crate) const MAX_KEPT_ELEMENTS: usize = 1 << 22;

    /// The smallest operation of one addition per element, in elements, that runs on several threads. A more expensive operation needs
    /// fewer elements. For a smaller operation, starting a second thread takes longer than the work.
    pub(crate) const MIN_PARALLEL: usize = 1 << 16;

    /// The approximate number of elements of a task of an operation of one addition per element. A task has one block or several blocks. With
    /// longer tasks, some threads wait at the end of an operation while others still work. With shorter tasks, threads spend more time on
    /// starting tasks.
    pub(crate) const TASK: usize = MIN_PARALLEL / 4;

    /// The largest number of tasks of an operation that reads no transposed matrix. With more tasks, successive reads of a thread are less
    /// often adjacent, so prefetching works worse.
    pub(crate) const MAX_TASKS: usize = 64;

    /// The smallest result, in bytes, that is written with non-temporal stores, if result and operands together exceed
    /// [`MAX_CACHED_BYTES`].
    pub(crate) const MIN_STREAMED_BYTES: usize = 16 << 20;

    /// The largest total size of a result and its operands, in bytes, for which the result is written into the cache. Up to this size,
    /// writing into a last-level cache of 32 MiB is faster than bypassing it.
    pub(crate) const MAX_CACHED_BYTES: usize = 36 << 20;

    /// The shortest row, in elements, whose blocks do not contain elements of other rows. Blocks within a row of stride 0 or 1 are read
    /// without a copy. Shorter rows share blocks.
    pub(crate) const LONG_ROW: usize = 128;

    /// The value of [`LONG_ROW`] for a program. A program gathers an operand (copies its short rows into a block) once and may read the block
    /// several times. So the copy is worthwhile for longer rows.
    pub(crate) const LONG_ROW_OF_PROGRAM: usize = 512;

    /// The blocks of a long row begin at multiples of this number of elements. Vectors of blocks that begin elsewhere cross cache lines,
    /// and each block ends with a loop over single elements. Measured on an AMD Zen 4: two instructions over 210,000 f32 took twice as
    /// long.
    pub(crate) const PART_UNIT: usize = 64;

    /// The size of the longest vectors (AVX-512), in bytes.
    pub(crate) const VECTOR_BYTES: usize = 64;

    /// The largest number of vectors in a small block. A program over few elements stores each of its values as one small block. Larger
    /// blocks leave too few registers for these values.
    pub(crate) const MAX_SMALL_BLOCK_VECTORS: usize = 4;

    /// The largest size of all small blocks of a program together, in bytes: a quarter of a second-level cache of 1 MiB.
    pub(crate) const MAX_SMALL_BLOCKS_BYTES: usize = 1 << 18;

    /// The largest block, in bytes, that stores a whole value of a program. The program's inputs are copied to blocks. For larger inputs,
    /// the copies take longer than the preparation that a program needs to read its inputs in place.
    pub(crate) const MAX_MEDIUM_BLOCK_BYTES: usize = 1 << 12;

    /// The largest total size, in bytes, of the blocks of all values of one program, if each value is stored whole in one block. It is the
    /// size of a first-level cache.
    pub(crate) const MAX_MEDIUM_BLOCKS_BYTES: usize = 1 << 15;

    /// A task that computes several totals has about this number of elements per total, or more. With fewer elements, clearing and
    /// combining the totals takes longer than the reduction.
    pub(crate) const MIN_ELEMENTS_PER_TOTAL: usize = 4;

    /// The number of blocks whose results a task accumulates in one set of totals. These sets are then combined in a tree
    /// (see `engine/stages.rs`). With more blocks, rounding errors are larger; with fewer blocks, there is more work. If there are
    /// more totals than elements in a block, the number of blocks is larger in proportion.
    pub(crate) const BLOCKS_PER_STAGE: usize = 16;
}

/// Thresholds for the rows of operands that broadcast. To *gather* rows is to copy several short rows into one contiguous block.
pub(crate) mod rows {
    /// The shortest row, in bytes, that a concatenation writes with non-temporal stores, if its result bypasses the caches. Each row may
    /// begin and end with a part of a cache line, which is written by ordinary stores.
    pub(crate) const MIN_STREAMED_ROW_BYTES: usize = 2048;

    /// The shortest row, in elements, that an operation with operands that broadcast computes in a loop of its own. Shorter rows are copied
    /// into blocks of several rows, if one loop can copy several of them.
    pub(crate) const MIN_LOOPED_ROW: usize = 8;

    /// The value of [`MIN_LOOPED_ROW`] if the row of an operand repeats. Copies of repeated rows are faster, so longer rows are
    /// copied too.
    pub(crate) const MIN_LOOPED_REPEATED_ROW: usize = 22;

    /// The longest row, in elements, that is computed one vector at a time, with a last vector that overlaps the one before. For longer
    /// rows, a loop over several vectors at a time is faster.
    pub(crate) const MAX_VECTOR_ROW: usize = 255;

    /// The shortest repeated row, in elements, that is read in place once per repetition. Shorter rows are first copied several times into
    /// one buffer. A fused program has [`LONG_ROW_OF_PROGRAM`](super::blocks::LONG_ROW_OF_PROGRAM) instead, because its blocks may contain
    /// several rows of this length.
    pub(crate) const MIN_READ_ROW: usize = 128;

    /// The largest number of elements after which an operand repeats, if it is first copied to a buffer. The copy must stay in the
    /// first-level cache.
    pub(crate) const MAX_PERIOD: usize = 4096;

    /// The shortest row, in elements, for which an instruction of a program reads an operand with one value per row directly. For shorter
    /// rows, the values are first repeated along the rows.
    pub(crate) const MIN_SCALED_ROW: usize = 8;

    /// The shortest row, in elements, whose sum of products is computed without storing the products. For shorter rows, a loop that
    /// multiplies all rows of a block and then a loop that sums them are faster.
    pub(crate) const MIN_SUMMED_ROW: usize = 256;

    /// The smallest length of an operand's rows, in elements, from which the operand is never gathered (copied into contiguous pieces). An
    /// operation that would need this copy takes the general path. This applies to results of at most one block of elements.
    pub(crate) const LONG_GATHERED_ROW: usize = 128;

    /// The largest number of elements that one call gathers, that is, copies from short rows into one contiguous block.
    pub(crate) const MAX_PIECE: usize = 2 * LONG_GATHERED_ROW;

    /// The number of 4-byte elements of the longest vectors (AVX-512).
    pub(crate) const VECTOR_ELEMENTS: usize = 16;

    /// The largest number of rows that are computed one after the other even if they are short. With more short rows, the rows are first
    /// gathered (copied into one contiguous block). This applies to operations of two operands whose result has at most one block of
    /// elements, if two nested loops can read the operands.
    pub(crate) const FEW_GATHERED_ROWS: usize = 8;

    /// The shortest row of the result, in elements, that the operations of [`FEW_GATHERED_ROWS`] compute without gathering, even if there
    /// are more rows. Formulas of several operations are computed row by row only if their rows are at least this long.
    pub(crate) const MIN_UNGATHERED_ROW: usize = 16;

    /// The largest number of elements that a plain loop copies. For a copy this short, a call of `memcpy` takes longer.
    pub(crate) const MAX_LOOP_COPY: usize = 16;

    /// The longest row, in elements, that is gathered by a loop with a constant row length. Each length needs a loop of its own.
    pub(crate) const MAX_SHORT_ROW: usize = 8;

    /// The shortest row, in elements, for which the adjoint of a slice writes zeros only around each copy. A row has the elements of the
    /// slice's dimension and of all dimensions after it. In a shorter row, two separate fills may take longer than the fill of the whole
    /// row. Measured on Emerald Rapids with rows of f32 that have two zeros: rows of 64 elements take 1.0 to 1.3 times as long, and rows of
    /// 130 elements take 0.8 to 0.9 of the time.
    pub(crate) const MIN_EMBEDDED_ROW: usize = 128;

    /// The smallest copy, in bytes, that may use vectors instead of `memcpy`. For shorter copies, `memcpy` never uses the instruction `rep
    /// movsb`. For some addresses, this instruction takes up to 20 times as long as a loop. Measured on an AMD Zen 4 with glibc 2.36.
    #[cfg(any(target_arch = "x86_64", test))]
    pub(crate) const MIN_VECTOR_COPY: usize = 1 << 11;
}

/// Thresholds for programs whose last dimension, the *short axis*, has few elements. A *lane* is the block's elements at one position of
/// the short axis.
pub(crate) mod short_axis {
    /// The largest number of elements of a short axis. For a longer row, a loop over the row is as fast. Measured on Zen 4: squared
    /// distances over rows of 42 elements take 0.18 ns an element, and 0.42 ns by loops over rows. Over rows of 128 elements, they take
    /// 0.23 ns and 0.27 ns.
    pub(crate) const MAX_LANES: usize = 128;

    /// The approximate number of elements of a block over all positions of the short axis. With this size, several values of a block stay in
    /// the first-level cache.
    pub(crate) const LANE_BLOCK: usize = 2048;

    /// The value of [`LANE_BLOCK`] for a program that reduces other dimensions than the short axis. The reduction makes one call for each
    /// lane of a block, so lanes must be longer.
    pub(crate) const REDUCED_LANE_BLOCK: usize = 8192;

    /// The smallest run for which a program works lane by lane. A run is a range of a lane's elements where each operand has a constant
    /// stride. With shorter runs, one call per lane takes too long. The last block of a run may be shorter.
    pub(crate) const MIN_LANE: usize = 32;

    /// The smallest size of the last dimension before the short axis for which this dimension is the inner loop. If the dimension is
    /// smaller, the longest dimension before the short axis is the inner loop.
    pub(crate) const LONG_DIMENSION: usize = 128;
}

/// Thresholds for the tiles in which transposed matrices are read.
pub(crate) mod transpose {
    /// The number of rows and columns of the squares that are transposed at once. With AVX-512, a square of 4-byte elements fits in the
    /// registers. A matrix with a shorter side is not tiled.
    pub(crate) const SIDE: usize = 16;

    /// The number of rows of a tile (a block of a transposed matrix). The elements of one column of a tile are contiguous in memory: two
    /// cache lines of f32.
    pub(crate) const TALL: usize = 32;

    /// The number of columns of a tile. The rows must be long, because the other operands and the result are read and written along them.
    pub(crate) const WIDE: usize = 256;

    /// The distance between the starts of neighbouring rows in a tile's buffer, in elements. The rows of a matrix's last tile may have up
    /// to [`SIDE`] - 1 elements more than [`WIDE`].
    pub(crate) const PITCH: usize = WIDE + SIDE;

    /// The number of elements of a tile's buffer. The last tile of a matrix also contains the remaining rows, which are fewer than
    /// [`SIDE`].
    pub(crate) const TILE: usize = (TALL + SIDE) * PITCH;
}

/// Thresholds for matrix products.
pub(crate) mod matmul {
    /// The largest number of columns of a floating-point product that is computed by its definition: plain loops that add the terms of each
    /// sum. If the product is added to the result, each row is first computed in a buffer of this number of elements.
    pub(crate) const FEW_COLUMNS: usize = 64;

    /// The largest number of columns of a product for the kernel for few columns, which computes each sum along a row of the left matrix.
    pub(crate) const THIN_COLUMNS: usize = 16;

    /// The largest number of rows of a product for the kernel for few rows. This kernel computes each sum along a row of the left matrix and
    /// a column of the right one. For more rows, it is faster to copy the columns and to compute several columns at once.
    pub(crate) const MAX_DOT_ROWS: usize = 16;

    /// `gemm` with operands in place is faster than the kernel for few rows if the result is small and the sums are short. This is the
    /// largest number of elements of the result, and the largest number of terms of a sum. With more elements, `gemm` rearranges the
    /// operands. Measured on an AMD Zen 4 with f32: [8, 200] x [200, 24] takes 1.1 us instead of 2.8 us. But [8, 512] x [512, 24] takes 4.5
    /// us instead of 2.3 us.
    pub(crate) const MAX_GEMM_IN_PLACE: usize = 256;

    /// The kernel for few rows computes all sums of this number of columns before it writes the sums to the result.
    pub(crate) const DOT_COLUMNS: usize = 64;

    /// The smallest number of elements of the right matrix that a task reads, if the kernel for few rows divides the columns among threads.
    pub(crate) const MIN_READ_PER_TASK: usize = 1 << 16;

    /// The size in bytes up to which a right matrix is copied for a product of more than a quarter of [`MAX_DOT_ROWS`] rows. A copy of this
    /// size fits in the first-level cache. The kernel for few rows reads larger matrices in place.
    pub(crate) const MAX_COPIED_BYTES: usize = 1 << 15;

    /// The number of terms that the kernel for few columns adds to every sum before it continues with the next terms. The elements of these
    /// terms stay in the first-level cache.
    pub(crate) const SEGMENT: usize = 1024;

    /// The number of columns that are computed at once in a product of a single row and a matrix.
    pub(crate) const ROW_PRODUCT_COLUMNS: usize = 4096;

    /// The largest number of multiplications of a floating-point product that is computed by its definition. For larger products, other
    /// kernels are faster in spite of their fixed cost.
    pub(crate) const MAX_BY_DEFINITION: usize = FEW_COLUMNS;

    /// The largest number of multiplications of a product for the compact kernel. This kernel reads the matrices in place, if the right
    /// matrix has contiguous rows and the left one contiguous rows or columns. Other matrices are copied first. The crate `gemm`, which
    /// computes larger products, rearranges both matrices.
    pub(crate) const MAX_COMPACT: usize = 1 << 13;

    /// The value of [`MAX_COMPACT`] if neither matrix must be copied, or if the compact kernel is faster although it copies the right matrix.
    /// The value is less than the work of one part of a product that is split by rows. So each part uses the same kernel as the whole
    /// product.
    pub(crate) const MAX_COMPACT_IN_PLACE: usize = 1 << 16;

    /// The value of [`MAX_COMPACT`] for a product that is not split, on AMD's processors. These processors read rows that cross cache lines
    /// as fast as other rows. This value is not used in the mode of equal bits.
    pub(crate) const MAX_COMPACT_WHOLE: usize = 1 << 18;

    /// The number of terms of each sum for which `gemm` is slow. On an AMD Zen 4, the product [3000, 2] x [2, 64] with a transposed right
    /// matrix takes 89 us by `gemm`. It takes 19 us by the compact kernel.
    pub(crate) const SLOW_TERMS: usize = 2;

    /// The number of rows up to which the compact kernel computes products of any number of multiplications, if neither matrix must be
    /// copied. Rearranging the right matrix takes as long as computing this many rows.
    pub(crate) const MAX_COMPACT_ROWS: usize = 12;

    /// The largest number of columns of a product with a single row for the compact kernel. The rows of the right matrix must be
    /// contiguous. The kernel keeps the sums of several vectors of columns in registers.
    pub(crate) const MAX_COMPACT_COLUMNS: usize = 128;

    /// The smallest number of terms of each sum of a product of 2 to [`THIN_COLUMNS`] columns for which the kernel for few columns is used.
    /// A single column needs no minimum.
    pub(crate) const MIN_THIN_TERMS: usize = 64;

    /// The largest size of a row of the right matrix, in bytes, for which the kernel for few columns copies columns that are not contiguous.
    /// The size is 8 columns of f32, or 4 of f64. For more columns, the compact kernel is faster.
    pub(crate) const MAX_COPIED_ROW_BYTES: usize = 32;

    /// The smallest number of rows for which [`MAX_COPIED_ROW_BYTES`] is used. For fewer rows, at most 3 columns are copied. Parts of a
    /// product that is split by rows have at least this number of rows.
    pub(crate) const MIN_THIN_ROWS: usize = 16;

    /// The largest size of a row of the left matrix, in bytes, for which the kernel for few columns computes all products of a single column.
    /// The rows must be contiguous. Measured on Zen 4, with f32 matrices: [921, 140] takes 7.7 us instead of 15.4 us by `gemm`. [1000, 300]
    /// takes 17 us instead of 22 us, but [1024, 1024] takes 62 us instead of 45 us.
    pub(crate) const MAX_SHORT_ROW_BYTES: usize = 1200;

    /// `gemm` rearranges a right matrix with contiguous columns slowly if the distance between the columns, in bytes, is a multiple of this
    /// number. At distances of 4096 bytes, it takes 5 ns for an element. A transposition takes 0.2 ns (AMD Zen 4).
    pub(crate) const SLOW_DISTANCE_BYTES: usize = 512;

    /// The largest number of rows of a product of `f32` for which a right matrix with contiguous columns is transposed before `gemm` reads
    /// it, at any distance of the columns. With more rows, or with `f64`, `gemm` rearranges the matrix nearly as fast.
    pub(crate) const MAX_TRANSPOSED_ROWS: usize = 64;

    /// The number of terms of a partial sum in the mode of equal bits, in which results have the same bits on every processor. With this
    /// value, the copied rows of a strip of 8 columns take 8 KiB of the first-level cache. Another value would change the last bits of
    /// results.
    pub(crate) const PANEL_TERMS: usize = 256;

    /// The number of columns of the right matrix that are copied at once in the mode of equal bits. The copy has 256 KiB of f32, which fit
    /// in the second-level cache.
    pub(crate) const PANEL_COLUMNS: usize = 256;

    /// The number of rows of the left matrix that are copied at once in the mode of equal bits, if the rows are not contiguous.
    pub(crate) const PANEL_ROWS: usize = 32;

    /// The smallest number of multiplications of a matrix product that runs on several threads.
    pub(crate) const MIN_PARALLEL: usize = 1 << 18;

    /// The value of [`MIN_PARALLEL`] for a product with one column and rows of at most [`MAX_SHORT_ROW_BYTES`] bytes. The product
    /// reads each element of the left matrix for only one multiplication.
    pub(crate) const MIN_PARALLEL_COLUMN: usize = 1 << 15;

    /// The smallest number of terms per sum for which threads may share the sums of a product of several rows. Each thread then adds a part
    /// of the terms.
    pub(crate) const MIN_SPLIT_SUM: usize = 1024;

    /// Products are split among threads at multiples of this number of rows. It is the largest number of rows that this crate's kernels for
    /// products compute at once.
    pub(crate) const ROW_UNIT: usize = 8;

    /// Products are split among threads at multiples of this number of columns. It is the largest number of columns that this crate's
    /// kernels for products compute at once.
    pub(crate) const COLUMN_UNIT: usize = 64;

    /// The value of [`COLUMN_UNIT`] for a product with fewer than [`MIN_WIDE`] columns and fewer than [`MIN_SPLIT_SUM`] terms per sum.
    /// Products of 256 or 384 columns are an exception: an even number of units of [`COLUMN_UNIT`] columns covers them.
    pub(crate) const NARROW_COLUMN_UNIT: usize = 16;

    /// The smallest number of columns of a product that is split among threads in units of [`COLUMN_UNIT`] columns, whatever its other
    /// sizes are.
    pub(crate) const MIN_WIDE: usize = 512;

    /// The smallest number of rows that a task transposes, if threads share the transposition of a right matrix. If the matrix has fewer
    /// rows, a task transposes a whole strip (a range of columns).
    pub(crate) const MIN_TRANSPOSED_ROWS: usize = 64;

    /// The number of threads from which on a product may be divided by rows and columns. On 16 threads of an Intel Emerald Rapids, this
    /// made the product of two matrices of 1024 rows and columns 1.4 times as fast. On 8 threads, it made little difference.
    pub(crate) const MANY_THREADS: usize = 8;

    /// The smallest number of columns of a tile, if threads divide both the rows and the columns of a product. With fewer columns, several
    /// threads would read and rearrange the same rows of the left matrix for little work.
    pub(crate) const MIN_TILE_COLUMNS: usize = 256;

    /// The number of rows from which on a product is split by columns only if it has at least twice as many columns as rows.
    pub(crate) const MANY_ROWS: usize = 256;

    /// The largest number of parts of a product that is split by columns. Each part reads the whole left matrix.
    pub(crate) const MAX_COLUMN_PARTS: usize = 16;
}

/// Thresholds for convolutions.
pub(crate) mod conv {
    /// The smallest number of multiplications of a convolution, or of one of its adjoints, that runs on several threads. Measured with five
    /// convolutional networks on an AMD Zen 4.
    pub(crate) const MIN_PARALLEL: usize = 1 << 17;

    /// The approximate number of elements of a tile: the columns of the matrix of windows that are computed and multiplied at once. Each
    /// column has the elements of one window. A tile must stay in the second-level cache. Its number of windows is rounded up to a multiple
    /// of 64.
    pub(crate) const TILE: usize = 1 << 16;

    /// The largest number of partial sums of the weight's gradient, each over a part of the batch or of the windows. For large weights and
    /// for many groups, there are fewer. More partial sums give work to more threads, but each is as large as the weight.
    pub(crate) const MAX_PARTIAL_SUMS: usize = 8;

    /// The number of windows that are computed in a buffer before their results are copied to the output. The value is a multiple of the
    /// number of windows that each kernel computes at once.
    pub(crate) const CHUNK_WINDOWS: usize = 384;

    /// The approximate number of windows that a kernel computes at once.
    pub(crate) const WINDOWS_AT_ONCE: usize = 48;

    /// The number of elements after a buffer's last valid element that kernels may read, without using their values.
    pub(crate) const READ_SLACK: usize = 128;

    /// For the weight's gradient, the planes of one channel of several images are stored next to each other. They are read in pieces of this
    /// number of elements. Several dot products are computed with one piece while it is in the first-level cache.
    pub(crate) const SEGMENT: usize = 2048;

    /// For the weight's gradient, one dot product runs over the copied planes of several images. This is the approximate number of elements
    /// of these planes. A plane is one channel of one image.
    pub(crate) const RUN_ELEMENTS: usize = 1 << 17;
}

/// Thresholds for pooling.
pub(crate) mod pool {
    /// The approximate number of elements of the planes (one plane per channel and image) in a task. With smaller tasks, the start of each
    /// task costs a larger part of the time. With larger tasks, some threads have no work.
    pub(crate) const PART: usize = 1 << 14;

    /// The number of windows that maximum pooling over adjacent windows of 2 x 2 elements computes at once. It is the number of f32
    /// elements in a vector of AVX2.
    pub(crate) const WINDOWS_AT_ONCE: usize = 8;
}

/// Thresholds for sorting and running sums. A *lane* is a line of elements along the dimension that is sorted or summed.
pub(crate) mod scan {
    /// The smallest operation, in elements, that runs on several threads.
    pub(crate) const MIN_PARALLEL: usize = 1 << 16;

    /// The number of adjacent lanes (lines along the sorted or summed dimension) that are processed together: a cache line of f32.
    pub(crate) const ADJACENT: usize = 16;

    /// The approximate number of elements of a task, if the lanes (lines along the dimension) are rows of the tensor. Lanes are not
    /// divided.
    pub(crate) const TASK: usize = 1 << 12;

    /// The number of adjacent lanes (lines along the summed dimension) whose running sums are computed together. Their totals stay in the
    /// first-level cache.
    pub(crate) const SCANNED_COLUMNS: usize = 64;

    /// For `logcumsumexp`: the number of elements of a lane whose exponentials and logarithms are computed with one call.
    pub(crate) const LOG_BLOCK: usize = 256;

    /// The shortest lane (a line along the sorted dimension), in elements, that several threads sort together.
    pub(crate) const MIN_SHARED_LANE: usize = 1 << 15;

    /// The smallest number of elements of a lane for which the available memory is checked. For shorter lanes, the check takes longer than
    /// the operation.
    pub(crate) const MIN_CHECKED_LANE: usize = 1 << 20;
}

/// Thresholds for the tasks of other kernels.
pub(crate) mod parts {
    /// In `index_add` and similar operations, the columns of the result are divided among tasks at multiples of this number. The value is
    /// large enough that few cache lines belong to two tasks.
    pub(crate) const COLUMNS: usize = 32;

    /// The number of elements of a task in an optimiser's step. With this size, the start on another thread costs little compared with the
    /// work.
    pub(crate) const STEP_PART: usize = 1 << 15;

    /// The number of elements that an optimiser's step copies to local arrays at a time. Loops over local arrays need no check for overlap.
    pub(crate) const STEP_BLOCK: usize = 64;
}

/// Sizes of samples at the points of a grid.
pub(crate) mod grid {
    /// The largest number of elements of a plane per point for which the plane is copied with zeros around it. Then points outside of the
    /// plane need no branches. In a copied plane, a point takes about 3 ns less. A copy takes about 0.15 ns per element. Measured on an
    /// Intel Emerald Rapids processor, with a fifth of the points outside of the plane. If all points are inside, the copy gains nothing. It
    /// then costs 2% with two elements per point, and 25% with eight.
    pub(crate) const MAX_COPIED_PER_POINT: usize = 2;
}

/// Sizes of distances between the rows of two matrices.
pub(crate) mod distances {
    /// The number of rows of the second matrix in a block. A block of f64 has 32 KiB.
    pub(crate) const COLUMNS: usize = 32;

    /// The number of terms (coordinates) in a block. The sums of the blocks are added to each other, which keeps rounding errors small.
    pub(crate) const TERMS: usize = 128;

    /// The number of rows of the first matrix in a task. A task copies the whole second matrix.
    pub(crate) const ROWS: usize = 256;

    /// For the distances between all pairs of rows of one matrix: the number of rows whose distances to all later rows are computed at
    /// once. The distances of these rows to each other are computed twice.
    pub(crate) const PAIR_ROWS: usize = 64;
}

/// Sizes of a softmax along a dimension that is not the last one.
pub(crate) mod softmax {
    /// The approximate number of elements of a block: adjacent columns with all their rows. A block and its exponentials stay in the
    /// second-level cache.
    pub(crate) const BLOCK: usize = 1 << 14;

    /// The largest number of columns of a block. With this value, a row of the block is as long as a block of other operations.
    pub(crate) const MAX_WIDTH: usize = super::blocks::BLOCK;

    /// The largest number of rows for which a softmax is computed by blocks of columns. With more rows, the columns of a block are so few
    /// that the calls for each row take too long.
    pub(crate) const MAX_ROWS: usize = 128;

    /// The smallest number of columns for which a softmax is computed by blocks of columns.
    pub(crate) const MIN_COLUMNS: usize = 64;
}

/// Thresholds of indexing, fusion, normalization, repeated terms and attention.
pub(crate) mod ops {
    /// The shortest row of an index tensor, in elements, for which `gather` and `scatter` use the indices themselves as positions, with one
    /// call per row. For shorter rows, the calls take longer than computing the positions of several rows into a block.
    pub(crate) const MIN_DIRECT_INDEX: usize = 16;

    /// The smallest tensor, in elements, for which an operation of several passes over memory is recorded and fused into one pass. For
    /// smaller tensors, recording takes longer than the passes.
    pub(crate) const MIN_FUSED: usize = 1 << 12;

    /// The lengths of rows, in elements, that one kernel normalizes in a single pass. For other lengths, a reduction adds the elements in
    /// another order, so the kernel would give other bits than separate operations.
    pub(crate) const NORMALIZED_ROWS: std::ops::RangeInclusive<usize> = 16..=1 << 16;

    /// The value of [`MIN_FUSED`] for normalizations. Smaller tensors stay in the second-level cache between the passes. Measured on an AMD
    /// Zen 4: for 210,000 f32, the fused layer normalization took 1.4 times as long as separate passes.
    pub(crate) const MIN_FUSED_NORMALIZATION: usize = 1 << 19;

    /// A sum of at least this number of equal terms in a matrix product is computed as one multiplication. A floating-point product of at
    /// least this number of equal factors is computed as one power. From this number of elements on, tapes and fused operations also
    /// compute expanded data before its expansion. Shorter sums and products of these kinds are computed term by term. Larger ones would
    /// take seconds, up to years, if computed term by term. The value was not tuned.
    pub(crate) const MANY_TERMS: usize = 1 << 24;

    /// The number of queries of attention in a block, except in the last block, is a multiple of this value. Only attention under a causal
    /// mask divides its queries into blocks.
    pub(crate) const QUERY_UNIT: usize = 32;

    /// The largest number of blocks of queries in attention. With more blocks, fewer masked scores are computed, but each block has a fixed
    /// cost.
    pub(crate) const MAX_QUERY_BLOCKS: usize = 8;

    /// The unit of the number of attention scores. Up to `n` blocks are used if there are at least `n²` times this number of scores.
    pub(crate) const SCORES_PER_BLOCK: usize = 1 << 14;
}

/// Thresholds of memory requests.
pub(crate) mod memory {
    /// The smallest request, in bytes, that is compared with the available memory. The check reads files of the operating system.
    pub(crate) const MIN_CHECKED_BYTES: usize = 256 << 20;

    /// The smallest buffer, in bytes, that comes from the pool. For smaller buffers, the allocator is as fast as the pool.
    pub(crate) const MIN_POOLED_BYTES: usize = 1 << 10;

    /// The largest number of bytes in the pool, unless `set_pool_capacity` changes it. It is 0 if the crate is compiled for a check of
    /// memory errors (`tools/sanitizers.sh`). That check cannot find accesses to memory that the pool keeps.
    pub(crate) const POOL_CAPACITY: usize = if option_env!("WENGERT_TEST_NO_POOL").is_some() { 0 } else { 1 << 30 };

    /// The size of a cache line, in bytes.
    pub(crate) const CACHE_LINE: usize = 64;

    /// The size of a huge page of x86-64, in bytes.
    pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

    /// The smallest buffer, in bytes, that uses huge pages on Linux. Huge pages need fewer page faults.
    pub(crate) const MIN_HUGE_PAGES_BYTES: usize = 4 << 20;
}
