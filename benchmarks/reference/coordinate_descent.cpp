// Logistic regression with a ridge penalty by DP-CD, written the way its paper describes it: dense columns,
// one fused loop per coordinate, residuals kept up to date, noise from the standard library.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

// The table arrives row by row; coordinate descent reads it column by column.
std::vector<double> columns_of(const double* table, std::size_t rows, std::size_t columns) {
    std::vector<double> result(rows * columns);
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) result[j * rows + i] = table[i * columns + j];
    return result;
}

}  // namespace

extern "C" void coordinate_descent(const double* table, const double* labels, std::int64_t n_rows,
                                   std::int64_t n_columns, std::int64_t steps, const double* clip,
                                   const double* step, double noise_multiplier, double ridge,
                                   std::uint64_t seed, double* weights) {
    const auto rows = static_cast<std::size_t>(n_rows), columns = static_cast<std::size_t>(n_columns);
    const std::vector<double> X = columns_of(table, rows, columns);
    std::vector<double> margins(rows, 0.0);
    std::fill(weights, weights + columns, 0.0);
    std::mt19937_64 generator(seed);
    std::normal_distribution<double> normal;
    std::uniform_int_distribution<std::size_t> any_column(0, columns - 1);

    for (std::int64_t k = 0; k < steps; ++k) {
        const std::size_t j = any_column(generator);
        const double* x = &X[j * rows];
        double gradient = 0.0;
        for (std::size_t i = 0; i < rows; ++i) {
            const double slope = -labels[i] / (1.0 + std::exp(labels[i] * margins[i]));
            gradient += std::clamp(slope * x[i], -clip[j], clip[j]);
        }
        gradient += noise_multiplier * clip[j] * normal(generator);
        const double moved = weights[j] - step[j] * gradient / static_cast<double>(rows);
        const double change = moved / (1.0 + step[j] * ridge) - weights[j];
        weights[j] += change;
        for (std::size_t i = 0; i < rows; ++i) margins[i] += change * x[i];
    }
}
