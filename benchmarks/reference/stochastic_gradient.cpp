// Logistic regression with a ridge penalty by DP-SGD with batches of one row, as in the experiments of the
// DP-CD paper: dense rows, the gradient clipped to a norm, noise from the standard library.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

extern "C" void stochastic_gradient(const double* table, const double* labels, std::int64_t n_rows,
                                    std::int64_t n_columns, std::int64_t steps, double clip, double step,
                                    double noise_multiplier, double ridge, std::uint64_t seed,
                                    double* weights) {
    const auto rows = static_cast<std::size_t>(n_rows), columns = static_cast<std::size_t>(n_columns);
    const std::vector<double> X(table, table + rows * columns);
    std::vector<double> gradient(columns);
    std::fill(weights, weights + columns, 0.0);
    std::mt19937_64 generator(seed);
    std::normal_distribution<double> normal;
    std::uniform_int_distribution<std::size_t> any_row(0, rows - 1);

    for (std::int64_t t = 0; t < steps; ++t) {
        const std::size_t i = any_row(generator);
        const double* x = &X[i * columns];
        double margin = 0.0;
        for (std::size_t j = 0; j < columns; ++j) margin += x[j] * weights[j];
        const double slope = -labels[i] / (1.0 + std::exp(labels[i] * margin));
        double square = 0.0;
        for (std::size_t j = 0; j < columns; ++j) {
            gradient[j] = slope * x[j];
            square += gradient[j] * gradient[j];
        }
        const double factor = std::min(1.0, clip / std::sqrt(square));
        for (std::size_t j = 0; j < columns; ++j) {
            const double noisy = factor * gradient[j] + noise_multiplier * clip * normal(generator);
            weights[j] = (weights[j] - step * noisy) / (1.0 + step * ridge);
        }
    }
}
