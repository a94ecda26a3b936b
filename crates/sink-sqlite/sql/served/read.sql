SELECT generation, swap FROM {served} WHERE id = 1
