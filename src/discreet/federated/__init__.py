"""Learn with parties that do not share their data: rounds of questions, noisy answers and sums."""
