"""Two mechanisms that hide ratings and which items were rated, and recovery by least nuclear norm."""
