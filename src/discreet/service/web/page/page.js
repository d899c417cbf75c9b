// The page needs no script yet.
